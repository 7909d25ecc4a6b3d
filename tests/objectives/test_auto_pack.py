"""objective.pack, left open, is on where it saves a tenth of the rows."""

import dataclasses
import json
import types

import pytest

from helpers import tiny as tiny_run
from maskedlm import objectives
from maskedlm.config import defaults as config_lib
from maskedlm.config import overrides
from maskedlm.data.batches import placeholder_corpus
from maskedlm.data.corpus import store


def _settled(monkeypatch, alone, packed, *, pack=None, **model):
  """objective.pack for an objective of so many rows in each phase."""
  made = []

  def make_task(config, corpus, shard, options):
    assert (corpus, shard) == ("corpus", (0, 1))
    made.append(options.pack)
    rows = packed if options.pack else alone
    return types.SimpleNamespace(rows_per_epoch=rows)

  objective = types.SimpleNamespace(
    make_task=make_task,
    Options=dataclasses.make_dataclass(
      "Options", [("pack", bool | None, None)]
    ),
  )

  config = config_lib.default("roberta").unlock()
  config.data.length = 256
  config.model.max_positions = 512
  monkeypatch.setattr(objectives, "load", lambda _: objective)
  config.model.update(model)
  config.objective = {"name": "any", "pack": pack}
  said = []
  found = objectives.resolve_packing(
    config, "corpus", log=said.append
  ).objective.pack
  assert config.objective.pack is pack  # A copy has the answer.
  return found, said, made


@pytest.mark.parametrize(
  ("alone", "packed", "answer"),
  [
    ((100,), (90,), True),
    ((100,), (91,), False),
    ((100, 40), (95, 36), True),  # The longer rows of the second phase.
    ((100, 40), (95, 37), False),
    ((1,), (1,), False),
  ],
)
def test_a_tenth_of_the_rows_of_any_phase(monkeypatch, alone, packed, answer):
  found, said, _ = _settled(monkeypatch, alone, packed)
  assert found is answer
  if answer:
    (line,) = said
    for p, a in zip(packed, alone, strict=True):
      assert f"{p} instead of {a}" in line
  else:
    assert not said


def test_an_answer_is_left_as_it_is(monkeypatch):
  for pack in (True, False):
    found, said, made = _settled(monkeypatch, (100,), (50,), pack=pack)
    assert (found, said, made) == (pack, [], [])


# With BERT's dropout of weights no kernel serves, be they packed or not.
KERNEL = {"dtype": "bfloat16", "attention_dropout": 0.0}


@pytest.mark.parametrize(
  ("model", "answer"),
  [
    ({**KERNEL, "attention": "cudnn"}, False),
    (KERNEL, False),
    ({**KERNEL, "dtype": "float32"}, True),
    ({**KERNEL, "attention_dropout": 0.1}, True),
    ({**KERNEL, "attention": "xla"}, True),
  ],
)
def test_a_kernel_that_serves_no_packed_rows_keeps_them_apart(
  monkeypatch, model, answer
):
  # Wherever it runs: the rows don't depend on the machine.
  found, said, _ = _settled(monkeypatch, (100,), (50,), **model)
  assert found is answer
  assert bool(said) is answer


@pytest.mark.parametrize("name", ["mlm_nsp", "spanbert", "electra"])
def test_it_is_open_by_default_and_long_documents_are_not_packed(name):
  config = config_lib.default(name)
  assert config.objective.pack is None
  corpus = placeholder_corpus.make_corpus(config.tokenizer)
  assert objectives.resolve_packing(config, corpus).objective.pack is False


@pytest.mark.parametrize("name", ["roberta", "causal"])
def test_objectives_whose_rows_are_full_have_no_such_option(name):
  config = config_lib.default(name)
  assert "pack" not in config.objective
  assert objectives.resolve_packing(config, None) is config


def test_short_texts_are_packed_and_the_command_line_says_otherwise(tiny):
  path, folder = tiny
  corpus = store.open_corpus(folder)
  config = overrides.load_config(str(path))
  config.data.length = config.model.max_positions = 92
  config.objective.short_share = 1.0  # 336 pairs, in 235 rows.
  assert objectives.resolve_packing(config, corpus).objective.pack is True
  task = objectives.make(config, corpus)
  assert "segment_weights" in task.batch_at("train", 0)
  config.objective.pack = False
  task = objectives.make(config, corpus)
  assert "segment_weights" not in task.batch_at("train", 0)


def test_a_run_keeps_the_answer_and_continues_with_it(tiny, tmp_path):
  path, folder = tiny
  command = [
    "pretrain",
    f"--config={path}",
    f"--config.corpus.path={folder}",
    f"--workdir={tmp_path}",
    "--config.objective.short_share=1.0",
    "--config.data.length=92",
    "--config.model.max_positions=92",
    "--config.optimizer.warmup_steps=1",
    "--config.train.eval_every=4",
    "--config.train.checkpoint_every=4",
  ]
  first = tiny_run.run(*command, "--config.train.num_steps=4")
  assert first.returncode == 0, first.stderr
  assert "(objective.pack=True)" in first.stderr
  kept = json.loads((tmp_path / "config.json").read_text())
  assert kept["objective"]["pack"] is True
  more = tiny_run.run(*command, "--config.train.num_steps=8")
  assert more.returncode == 0, more.stderr
  assert "continuing from the checkpoint of step 4" in more.stderr
  other = tiny_run.run(
    *command, "--config.train.num_steps=12", "--config.objective.pack=False"
  )
  assert other.returncode == 2
  assert "objective.pack" in other.stderr
