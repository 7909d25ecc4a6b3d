"""`maskedlm inspect`: figures by hand, and the command."""

import json
import re
import types

import jax
import numpy as np
import pytest

from maskedlm.cli import main
from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError
from maskedlm.data.batches import placeholder_corpus
from maskedlm.data.tokenizers.tokenizer import Special
from maskedlm.modeling.attention import layer
from maskedlm.planning import memory
from maskedlm.planning.inspect import facts, html_page, rows, schedules
from maskedlm.pretraining import objectives, predictions
from maskedlm.pretraining.config import split
from maskedlm.training import sharding, step_memory
from maskedlm.training import step as steps

# Ids: 0-4 special (4 = [MASK]); 5-9 begin a word, 10-14 continue one.
TOKENIZER = types.SimpleNamespace(
  special=Special(pad=0, unk=1, cls=2, sep=3, mask=4),
  special_ids=np.arange(5),
  follows_space=np.arange(15) < 10,
  starts_word=np.arange(15) < 10,
  tokens=lambda i: ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"][i],
  decode=lambda ids: f"t{ids[0]}" if ids[0] < 10 else f"##t{ids[0]}",
)
#        0  1  2   3   4  5  6  7
ROWS = [
  [2, 5, 10, 6, 7, 1, 3, 0],
  [2, 8, 9, 11, 12, 3, 0, 0],
]
SEEN = [
  [2, 4, 4, 6, 9, 1, 3, 0],  # 1, 2 masked; 3 kept; 4 random.
  [2, 8, 4, 11, 12, 3, 0, 0],  # 2 masked.
]


CURVES = [schedules.Curve("learning rate", [(0, 0.0)])]


def batch():
  plain = {
    "input_ids": np.array(ROWS),
    "segment_ids": (np.array(ROWS) > 0).astype(int),
    "nsp_labels": np.array([1, 0]),
  }
  hidden = {
    **plain,
    "input_ids": np.array(SEEN),
    "masked_positions": np.array([[1, 2, 3, 4], [2, 0, 0, 0]]),
    "masked_weights": np.array([[1.0, 1, 1, 1], [1, 0, 0, 0]]),
  }
  return plain, hidden


def test_figures_by_hand():
  figures = rows.measure_rows([batch()], TOKENIZER)
  assert figures["mask_rate"] == 5 / 13
  assert figures["mask_share"] == 3 / 5
  assert figures["keep_share"] == 1 / 5
  assert figures["random_share"] == pytest.approx(1 / 5)
  # Two runs: the words (5 10)(6)(7) of row 0, and (9...) of row 1.
  assert figures["span_length_mean"] == (3 + 1) / 2
  assert figures["nsp_random_share"] == 1 / 2
  assert figures["padding_share"] == 3 / 16
  assert figures["unk_share"] == 1 / 13
  assert figures["rows_measured"] == 2


def test_what_a_task_lacks_is_none():
  plain, hidden = batch()
  for arrays in (plain, hidden):
    del arrays["nsp_labels"]
  del hidden["masked_positions"]
  figures = rows.measure_rows([(plain, hidden)], TOKENIZER)
  for name in ("mask_rate", "mask_share", "span_length_mean"):
    assert figures[name] is None
  assert figures["nsp_random_share"] is None
  assert figures["padding_share"] == 3 / 16


def test_a_sample_row():
  row = rows.sample_row(*batch(), 0, TOKENIZER)
  assert [t.treatment for t in row] == [
    "", "mask", "mask", "keep", "random", "", "",
  ]  # fmt: skip
  plain = rows.format_row(row, coloured=False)
  assert plain == ("[CLS] {t5>[MASK]}{t10>[MASK]} {t6>t6} {t7>t9} [UNK] [SEP]")
  assert "\033" not in plain
  assert rows.format_row(row, coloured=True).count("\033[0m") == 4
  page = html_page.render_page("<x>", [("A & B", ["1 < 2"])], [row], CURVES)
  assert "&lt;x&gt;" in page and "A &amp; B" in page and "1 &lt; 2" in page
  assert page.count("<span class=mask><s>") == 2
  assert page.index("Sample rows") < page.index("A &amp; B")
  assert "src=" not in page and "href=" not in page  # Loads nothing.


# Token 10 of row 0 and 9, 11 of row 1 were deleted; 4 places are predicted.
MOVED = [
  [2, 5, 6, 7, 1, 3, 0, 0],
  [2, 8, 12, 3, 0, 0, 0, 0],
]


def moved_batch():
  plain, hidden = batch()
  hidden |= {
    "input_ids": np.array(MOVED),
    "segment_ids": (np.array(MOVED) > 0).astype(int),
    "masked_positions": np.array([[1, 2, 0, 0], [1, 0, 0, 0]]),
    "masked_labels": np.array([[10, 0, 0, 0], [9, 0, 0, 0]]),
    "masked_weights": np.array([[1.0, 1, 0, 0], [1, 0, 0, 0]]),
  }
  return plain, hidden


def test_a_sample_row_with_edits():
  figures = rows.measure_rows([moved_batch()], TOKENIZER)
  assert figures["mask_rate"] == 3 / 10  # Of the tokens that the model sees.
  assert figures["nothing_share"] == 1 / 3
  for name in ("mask_share", "random_share", "keep_share", "span_length_mean"):
    assert figures[name] is None
  row = rows.sample_row(*moved_batch(), 0, TOKENIZER)
  assert [t.treatment for t in row] == ["", "label", "label", "", "", ""]
  shown = rows.format_row(row, coloured=False)
  assert shown == "[CLS] {t5:t10} {t6:NOTHING} t7 [UNK] [SEP]"
  page = html_page.render_page("x", [], [row], CURVES)
  assert "<span class=label><bdi>t5</bdi> <bdi>t10</bdi></span>" in page
  # Without edits there is no NOTHING.
  assert rows.measure_rows([batch()], TOKENIZER)["nothing_share"] is None


def test_bytes_follow_the_sharding_rules():
  tree = {
    "mlp": {"up": {"kernel": np.zeros((8, 12), np.float32)}},
    "norm": {"scale": np.zeros(8, np.float32)},
  }
  mesh = types.SimpleNamespace(shape={"data": 5, "fsdp": 4, "tensor": 3})
  assert memory.bytes_per_device(tree, mesh) == 4 * (8 * 12 // 12 + 8)


def small(**model):
  """Returns a config of two phases: 16 rows of 40 tokens, then 8 of 1,024."""
  c = defaults.default("mlm_nsp")
  c.tokenizer.vocab_size = 500
  c.model.update(num_layers=2, width=32, num_heads=4, mlp_width=48)
  c.model.update(max_positions=1024, attention_dropout=0.0, **model)
  c.data.update(length=40, batch_size=16)
  c.phases = ({}, {"share": 0.5, "data.length": 1024, "data.batch_size": 8})
  c.train.num_steps = 10
  c.optimizer.warmup_steps = 2
  return c


def parts(config):
  """Returns the phases of a config and the Task of each, without a corpus."""
  phases = split(config)
  corpus = placeholder_corpus.make_corpus(config.tokenizer)
  return phases, [objectives.make_task(p.config, corpus) for p in phases]


# 2 layers of 3 x 1,024 tokens: 8 vectors of 32 and 2 of 48; 154 predictions.
KEPT = 2 * 3 * 1024 * (8 * 32 + 2 * 48) * 4
LOGITS = 2 * 3 * 154 * 500 * 4
SCORES = 2 * 3 * 1024 * (2 * 4 * 1024) * 4


EVERY_LOGIT = 2 * 3 * 1024 * 500 * 4


@pytest.mark.parametrize(
  ("platform", "model", "expected"),
  [
    ("cpu", {}, KEPT + LOGITS),  # blockwise writes no scores.
    ("gpu", {}, KEPT + LOGITS + SCORES),  # In float32 no kernel is supported.
    ("gpu", {"dtype": "bfloat16"}, KEPT // 2 + LOGITS),  # cudnn.
    (  # Chosen in the config.
      "cpu",
      {"attention": "cudnn", "dtype": "bfloat16", "num_heads": 2},
      KEPT // 2 + LOGITS,
    ),
    # With remat 7 vectors of 32, but one head of 4 (8 wide) for keys and
    # values, which are not repeated, and one of 48.
    (
      "cpu",
      {"remat": "dots", "num_kv_heads": 1},
      2 * 3 * 1024 * (5 * 32 + 2 * 8 + 48) * 4 + LOGITS,
    ),
    # A causal model has logits of every token.
    ("cpu", {"objective": "causal"}, KEPT + EVERY_LOGIT),
    # LSTMs keep their gates and cells.
    (
      "cpu",
      {"objective": "bilm"},
      2 * 3 * 1024 * (4 * 32 + 22 * 48) * 4 + EVERY_LOGIT,
    ),
  ],
)
def test_activations_that_are_kept(platform, model, expected):
  model = dict(model)
  objective = model.pop("objective", "mlm_nsp")
  config = small(**model)
  config.objective = defaults.default(objective).objective
  assert memory.activation_bytes(config, 3, 1024, platform=platform) == expected


@pytest.fixture
def measured(monkeypatch):
  """Compiles no step; returns [what each takes of a device's memory]."""
  found = [step_memory.StepMemory(70_000_000, 90_000_000)]
  monkeypatch.setattr(step_memory, "measure_memory", lambda *args: found[0])
  return found


def test_each_phase_has_its_own_figures(measured):
  phases, tasks = parts(small())
  figures, sections = facts.facts_of_model(phases, tasks)
  first, last = figures["phases"]
  assert (first["rows"], first["length"], first["first_step"]) == (16, 40, 0)
  assert (last["rows"], last["length"], last["first_step"]) == (8, 1024, 5)
  assert (first["attention"], last["attention"]) == ("xla", "blockwise")
  assert first["flops_per_step"] == figures["flops_per_step"]
  for phase, task in zip((first, last), tasks, strict=True):
    assert phase["flops_per_step"] == task.flops(0)
  titles = [s.title for s in sections if s.title.startswith("A step on")]
  assert [title.split("}, ")[1] for title in titles] == [
    "from step 0 on",
    "from step 5 on",
  ]


@pytest.mark.parametrize(
  ("objective", "options"),
  [
    ("mlm_nsp", {}),
    pytest.param(
      "roberta",
      {"train.accumulate": 2},
      marks=pytest.mark.slow,
    ),
    pytest.param(
      "roberta",
      {"mesh.fsdp": 2},
      marks=pytest.mark.slow,
    ),
  ],
)
def test_a_step_takes_what_the_run_will_allocate(objective, options):
  config = small(num_layers=1, dropout=0.0)
  config.phases = ()
  config.objective = defaults.default(objective).objective
  config.update_from_flattened_dict(options)
  phases, tasks = parts(config)
  figures, sections = facts.facts_of_model(phases, tasks)
  mesh = sharding.make_mesh(config.mesh)
  with jax.set_mesh(mesh):
    for phase, part, task in zip(figures["phases"], phases, tasks, strict=True):
      program = steps.over_mesh(part.config, task, mesh)
      state = program.init()
      batch = sharding.place(task.batch_at("train", 0), mesh)
      sizes = program.step.lower(state, batch).compile().memory_analysis()
      new = sizes.output_size_in_bytes - sizes.alias_size_in_bytes
      needed = sizes.argument_size_in_bytes + sizes.temp_size_in_bytes + new
      assert phase["compiled"] and phase["fits"]
      assert phase["step_bytes_per_device"] == pytest.approx(needed, rel=0.01)
  lines = [x for s in sections for x in s.lines if x.startswith("memory:")]
  assert len(lines) == len(figures["phases"])


def test_a_step_that_does_not_fit_is_shown_with_what_helps(measured):
  config = small(num_layers=1)
  config.phases = ()
  measured[0] = measured[0]._replace(limit=60_000_000)
  figures, sections = facts.facts_of_model(*parts(config))
  assert not figures["phases"][0]["fits"]
  (line,) = [x for s in sections for x in s.lines if x.startswith("memory:")]
  assert "does not fit" in line and "data.batch_size (now 16)" in line


def test_for_devices_that_are_elsewhere_memory_is_an_estimate():
  config = small()
  config.mesh.update(data=4, fsdp=16)
  phases, tasks = parts(config)
  figures, sections = facts.facts_of_model(phases, tasks)
  assert not figures["phases"][0]["compiled"] and figures["devices"] == 64
  assert "maskedlm plan" in str(sections)
  parameters = figures["parameter_bytes_per_device"]
  held = sum(
    figures[f"{name}_bytes_per_device"]
    for name in ("parameter", "optimizer", "activation")
  )
  assert figures["step_bytes_per_device"] == held
  # Of a row of each device: activations, the gradient and the batch.
  kept = memory.activation_bytes(phases[0].config, 1, 40, **layer.machine())
  batch = sum(x.nbytes for x in tasks[0].batch_at("train", 0).values()) // 64
  first = figures["phases"][0]
  assert first["activation_bytes_per_device"] == kept + parameters + batch
  # A moving average is as large as the parameters.
  config.train.ema_decay = 0.9
  averaged, _ = facts.facts_of_model(*parts(config))
  name = "optimizer_bytes_per_device"
  assert averaged[name] - figures[name] == parameters


def test_curves_over_the_tokens():
  config = small()
  config.optimizer.schedule = "constant"
  rate, rows, length = schedules.curves(split(config))
  assert (rate.name, rows.name) == ("learning rate", "rows of a step")
  assert length.name == "tokens in a row"
  # 5 steps of 640 tokens, then 5 of 8,192.
  assert dict(rows.points)[4 * 640] == 16
  assert dict(rows.points)[5 * 640] == 8
  assert schedules.bounds(length) == (40, 1024)
  assert rate.points[0] == (0, 0.0)
  assert dict(rate.points)[640] == pytest.approx(0.5e-4)
  # The first phase has 3,200 of 44,160 tokens, and its last step begins 8,192
  # before the end: 6 of 61 characters.
  line = schedules.sparkline(length)
  assert len(line) == 61 and line == "▁" * 6 + "█" * 55


def test_a_table_of_the_phases():
  phases, tasks = parts(small())
  tasks = [task._replace(rows_per_epoch=40) for task in tasks]
  lines = schedules.format_table(phases, tasks)
  assert len(lines) == 3
  # 5 steps of 16 of 40 rows, and 5 of 8.
  assert lines[1].split()[5] == "2" and lines[2].split()[5] == "1"
  assert schedules.format_table(phases, None)[1].split()[5] == "-"
  assert "3,200" in lines[1] and "40,960" in lines[2]
  assert "data.length=1024" in lines[2]


@pytest.mark.parametrize("length", [128, 8192])
def test_without_a_corpus_packed_rows_count_in_full(length):
  config = small()
  config.data.length, config.phases = length, ()
  config.model.max_positions = length
  config.objective.short_share = 0.0
  costs = []
  for pack in (False, True):
    config.objective.pack = pack
    task = objectives.make_task(
      config, placeholder_corpus.make_corpus(config.tokenizer)
    )
    costs.append(task.flops(0))
  assert 0.9 * costs[0] < costs[1] <= costs[0]


def test_the_verb(tiny, tmp_path, measured, capsys):
  page = tmp_path / "r.html"
  arguments = ["inspect", f"--config={tiny[0]}"]
  arguments.append(f"--config.corpus.path={tiny[1]}")
  assert main.main([*arguments, "--rows=2", f"--html={page}"]) == 0
  shown = capsys.readouterr().out
  for words in ("Parameters:", "decay", "learning rate", "[MASK]}", "epochs"):
    assert words in shown
  assert "\033" not in shown  # Not a terminal: no colours.
  padding = r"padding: (.+)% of the positions; (.+)% with objective.pack=True"
  assert re.search(padding, shown)
  assert page.read_text().startswith("<!doctype html>")
  assert main.main([*arguments, "--json"]) == 0
  figures = json.loads(capsys.readouterr().out)
  assert figures["parameters"] == 24_306
  # 6 of 40 tokens; shorter rows round up or down.
  assert figures["mask_rate"] == pytest.approx(0.15, abs=0.01)
  assert figures["mask_share"] == pytest.approx(0.8, abs=0.04)
  assert figures["nsp_random_share"] == pytest.approx(0.5, abs=0.1)
  assert figures["padding_share_pack_false"] == figures["padding_share"]
  assert 0 <= figures["padding_share_pack_true"] < 0.05


def test_without_a_corpus(tiny, tmp_path, measured, capsys):
  argv = [f"--config={tiny[0]}", f"--workdir={tmp_path}"]
  assert main.main(["inspect", *argv]) == 0
  shown = capsys.readouterr().out
  assert "no corpus yet" in shown and "24,306" in shown


def test_nothing_to_predict(tiny, monkeypatch):
  monkeypatch.setattr(
    predictions, "count_predictions", lambda *a, **k: predictions.Counts(9, 0)
  )
  argv = [f"--config={tiny[0]}", f"--config.corpus.path={tiny[1]}"]
  with pytest.raises(ConfigError, match="train: 0 of 9 tokens are predicted"):
    main.call(["inspect", *argv])


@pytest.mark.parametrize(
  ("override", "words"),
  [
    ("--config.corpus.path=/nowhere", "/nowhere"),
    ("--config.objective.mask_rate=0", "mask_rate=0"),
    ("--config.objective.max_predictions=2", "at least 6"),
    ("--rows=-1", "--rows=-1"),
  ],
)
def test_bad_input(tiny, tmp_path, override, words, capsys):
  argv = [f"--config={tiny[0]}", f"--config.corpus.path={tiny[1]}"]
  argv += [f"--workdir={tmp_path}", override]
  assert main.main(["inspect", *argv]) == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith("error: ") and words in line
