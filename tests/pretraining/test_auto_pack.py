"""objective.pack=None packs rows where that saves a tenth of them."""

import dataclasses
import json
import types

import pytest

from helpers import tiny as tiny_run
from maskedlm.config import defaults as config_lib
from maskedlm.config import overrides
from maskedlm.data.batches import placeholder_corpus
from maskedlm.data.corpus import store
from maskedlm.pretraining import objectives
from maskedlm.pretraining.config import decide_packing


def decide(monkeypatch, alone, packed, *, pack=None):
  """Resolves objective.pack of an objective of so many rows in each phase.

  Returns:
    The answer, the lines logged, and the values of `pack` that were counted.
  """
  counted = []

  def make_batches(config, corpus, shard, options):
    assert shard == (0, 1)
    counted.append(options.pack)
    rows = packed if options.pack else alone
    return types.SimpleNamespace(rows_per_epoch=rows[corpus])

  objective = types.SimpleNamespace(  # No Task is built: it has no make_task.
    make_batches=make_batches,
    Options=dataclasses.make_dataclass(
      "Options", [("pack", bool | None, None)]
    ),
  )
  config = config_lib.default("mlm_nsp")
  config.unlock()
  config.objective = {"name": "any", "pack": pack}
  monkeypatch.setattr(objectives, "load_objective", lambda _: objective)
  lines = []
  # The corpus is the number of the phase.
  phases = range(len(alone))
  config.phases = ({}, *({"share": 0.5} for _ in phases[1:]))
  decide_packing(config, phases, log=lines.append)
  return config.objective.pack, lines, counted


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
  found, lines, _ = decide(monkeypatch, alone, packed)
  assert found is answer
  if answer:
    (line,) = lines
    for p, a in zip(packed, alone, strict=True):
      assert f"{p} instead of {a}" in line
  else:
    assert not lines


def test_a_given_value_is_kept(monkeypatch):
  for pack in (True, False):
    answer = decide(monkeypatch, (100,), (50,), pack=pack)
    assert answer == (pack, [], [])


@pytest.mark.parametrize("name", objectives.names())
def test_the_default_is_none_and_long_documents_are_not_packed(name):
  config = config_lib.default(name)
  assert config.objective.get("pack") is None
  corpus = placeholder_corpus.make_corpus(config.tokenizer)
  decide_packing(config, [corpus], log=lambda line: None)
  if name in ("mlm_nsp", "spanbert", "electra"):
    assert config.objective.pack is False
  else:  # Their rows are full.
    assert "pack" not in config.objective


def test_short_texts_are_packed_unless_the_option_is_false(tiny):
  path, folder = tiny
  corpus = store.open_corpus(folder)
  config = overrides.load_config(str(path))
  config.data.length = config.model.max_positions = 92
  config.objective.short_share = 1.0  # 336 pairs, in 235 rows.
  task = objectives.make_task(config, corpus)
  assert "segment_weights" in task.batch_at("train", 0)
  assert config.objective.pack is None
  decide_packing(config, [corpus], log=lambda line: None)
  assert config.objective.pack is True
  config.objective.pack = False
  task = objectives.make_task(config, corpus)
  assert "segment_weights" not in task.batch_at("train", 0)


@pytest.mark.slow
def test_a_run_records_the_answer_and_resumes_with_it(tiny, tmp_path):
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
