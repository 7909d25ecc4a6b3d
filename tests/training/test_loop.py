"""The loop on a toy task: it logs, evaluates, checkpoints and resumes."""

import itertools
import json
import shutil

import jax
import numpy as np
import pytest

from helpers import toy
from helpers.toy_runs import (
  assert_same_end,
  board_events,
  killed_at,
  logged_lines,
  make_config,
  run,
)
from maskedlm.core.errors import ConfigError
from maskedlm.training import (
  loop,
  nonfinite_rows,
  optimizer,
  step_memory,
)
from maskedlm.training.checkpoints import files, load, manifest
from maskedlm.training.progress import evaluate


def steady(workdir):
  """Returns the logged lines without values that depend on the machine."""
  return [
    {k: v for k, v in x.items() if k != "tokens_per_second"}
    for x in logged_lines(workdir)
  ]


def test_a_run_logs_evaluates_and_keeps_checkpoints(tmp_path, mesh, capsys):
  c = make_config()
  result = run(c, toy.make_task(), tmp_path, mesh)
  assert result.step == 10 and not result.interrupted
  assert result.tokens_per_second > 0
  logged = logged_lines(tmp_path)
  # Every second step, and those of checkpoints: 3, 6, 9.
  assert [x["step"] for x in logged if "loss" in x] == [2, 3, 4, 6, 8, 9, 10]
  assert [x["step"] for x in logged if "heldout/loss" in x] == [4, 8, 10]
  for name in ("learning_rate", "gradient_norm", "real_share", "error"):
    assert name in logged[0]
  # The learning rate of steps 0 and 1 (warm-up of 2), averaged.
  assert logged[0]["learning_rate"] == pytest.approx(0.01 * (0 + 0.5) / 2)
  # A line is the mean over the steps since the line before.
  rate = optimizer.make_schedule(c.optimizer, 10)
  trained = [x for x in logged if "loss" in x]
  before = [0, *(x["step"] for x in trained)]
  for start, x in zip(before, trained, strict=False):
    mean = np.mean([rate(step) for step in range(start, x["step"])])
    assert x["learning_rate"] == pytest.approx(float(mean))
  assert logged[-1]["heldout/loss"] == pytest.approx(result.heldout["loss"])
  board = [x for x in board_events(tmp_path) if x.HasField("summary")]
  assert [
    {"step": x.step, **{v.tag: v.simple_value for v in x.summary.value}}
    for x in board
  ] == [pytest.approx(x) for x in logged]
  assert json.loads((tmp_path / "config.json").read_text())["seed"] == 0
  parameters = (tmp_path / "parameters.txt").read_text()
  assert parameters == "dense/kernel (3, 1) (None, None)\n"
  # A finished run evaluates again, without training.
  again = run(c, toy.make_task(), tmp_path, mesh)
  assert again.heldout == result.heldout
  assert again.step == 10 and again.tokens_per_second is None
  assert "continuing from the checkpoint of step 10 of 10" in (
    capsys.readouterr().err
  )


def test_every_heldout_batch_counts(mesh):
  task = toy.make_task(num_heldout_batches=6)._replace(
    score=lambda outputs: {"order": [x["i"] for x in outputs]}
  )

  def heldout_step(params, batch, i):  # Weights of 1, 2, ... 6.
    return {"a": (2.0**i, i + 1.0)}, {"m": (3.0**i, i + 1.0)}, {"i": i}

  found = evaluate(task, heldout_step, None, mesh, lambda: False)
  # The sums 1 + 2 + ... + 32 and 1 + 3 + ... + 243, over 21.
  assert found == {
    "loss": 63 / 21,
    "m": pytest.approx(364 / 21),
    "order": [0, 1, 2, 3, 4, 5],
  }


def test_every_few_steps_can_be_kept_for_good(tmp_path, mesh):
  """Steps 3, 6 and 9 are regular checkpoints, of which the newest is kept."""
  c = make_config(keep_last=1, keep_best=0, keep_every=4)
  run(c, toy.make_task(), tmp_path / "whole", mesh)
  kept = loaded_steps(tmp_path / "whole")
  assert kept == [0, 4, 8, 10]
  first = load.load_params(tmp_path / "whole", step=0)[0]
  last = load.load_params(tmp_path / "whole")[0]
  assert not trees_equal(first, last)
  # Continued from the start, the run is the same.
  part = tmp_path / "part" / "checkpoints"
  part.mkdir(parents=True)
  shutil.copytree(tmp_path / "whole" / "checkpoints" / "0", part / "0")
  run(c, toy.make_task(), tmp_path / "part", mesh)
  assert trees_equal(load.load_params(tmp_path / "part")[0], last)
  whole, continued = (
    [line["step"] for line in logged_lines(tmp_path / name)]
    for name in ("whole", "part")
  )
  assert whole == continued


def loaded_steps(workdir):
  names = [p.name for p in (workdir / "checkpoints").iterdir()]
  return sorted(int(name) for name in names if name.isdigit())


def trees_equal(a, b):
  same = jax.tree.map(np.array_equal, a, b)
  return all(jax.tree.leaves(same))


def test_the_last_step_is_compiled_before_the_first(
  tmp_path, mesh, monkeypatch
):
  """So a second phase that doesn't fit is an error at the start."""

  def check_memory(config, step, state, batch):
    np.testing.assert_array_equal(
      batch["x"], toy.make_task().batch_at("train", 9)["x"]
    )
    raise ConfigError("it does not fit")

  monkeypatch.setattr(step_memory, "check_memory", check_memory)
  with pytest.raises(ConfigError, match="not fit"):
    run(make_config(), toy.make_task(), tmp_path, mesh)
  assert not (tmp_path / "metrics.jsonl").exists()


def test_every_shape_of_a_batch_is_checked():
  """The first rows may need more than the long ones, if they are many."""

  def rows(*counts):
    task = toy.make_task()._replace(
      batch_at=lambda split, step: {"x": np.zeros((counts[step], 3))}
    )
    found = step_memory.shapes(task, 0, len(counts))
    return [len(batch["x"]) for batch in found]

  assert rows(4, 4, 2) == [2, 4]  # The last, as an error is likelier.
  assert rows(4, 4, 4) == [4]
  assert rows(4) == [4]


def test_stopping_and_resuming_changes_nothing(tmp_path, mesh):
  c = make_config(log_every=5, ema_decay=0.9)
  whole = run(c, toy.make_task(), tmp_path / "whole", mesh)
  half = tmp_path / "half"
  with pytest.raises(KeyboardInterrupt):
    run(c, killed_at(toy.make_task(), 7), half, mesh)
  assert "ema_loss" in whole.heldout
  assert_same_end(run(c, toy.make_task(), half, mesh), whole)
  # The log is the same too; repeated steps are in it once.
  assert steady(half) == steady(tmp_path / "whole")


@pytest.fixture(scope="module")
def whole(tmp_path_factory, mesh):
  """Returns the folder of a run that was not stopped."""
  folder = tmp_path_factory.mktemp("whole")
  run(make_config(log_every=1, keep_last=9), toy.make_task(), folder, mesh)
  return folder


# The loop checks whether to stop after each step, each of two held-out batches
# and each evaluation: at its 4th check it is about to evaluate step 4, at the
# 5th it is in the middle of that.
@pytest.mark.parametrize(
  ("check", "stopped_at", "evaluated"),
  [(5, 4, []), (7, 4, [4]), (17, 10, [4, 8])],
)
def test_a_stop_loses_no_evaluation(
  tmp_path, mesh, whole, monkeypatch, check, stopped_at, evaluated
):
  c = make_config(log_every=1, keep_last=9)
  checks = itertools.count(1)
  with monkeypatch.context() as patched:
    patched.setattr(
      loop.multihost,
      "any_host",
      lambda flag, delay: lambda: next(checks) >= check,
    )
    stopped = run(c, toy.make_task(), tmp_path, mesh)
  assert stopped.interrupted and stopped.step == stopped_at
  assert (tmp_path / "checkpoints" / str(stopped_at)).is_dir()
  found = [x["step"] for x in logged_lines(tmp_path) if "heldout/loss" in x]
  assert found == evaluated
  run(c, toy.make_task(), tmp_path, mesh)
  assert steady(tmp_path) == steady(whole)
  # A step evaluated after it was saved can be the best too.
  ranks = [
    {
      step: manifest.read_record(checkpoints / str(step))["metric"]
      for step in files.ranked_steps(checkpoints)
    }
    for checkpoints in (whole / "checkpoints", tmp_path / "checkpoints")
  ]
  assert ranks[0] == ranks[1] and set(ranks[0]) == {4, 8, 10}


def test_single_nonfinite_steps_are_skipped_and_logged(tmp_path, mesh, capsys):
  c = make_config(nonfinite_limit=3, checkpoint_every=2)
  result = run(c, toy.make_task(bad_steps=(2, 3, 6)), tmp_path, mesh)
  assert result.step == 10
  assert np.isfinite(result.heldout["loss"])
  assert [x["skipped"] for x in logged_lines(tmp_path) if "skipped" in x] == [
    0,
    1,
    0,
    0.5,
    0,
  ]
  assert "2 of the last 2 steps were skipped" in capsys.readouterr().err


def test_many_nonfinite_steps_stop_the_run_and_dump_rows(tmp_path, mesh):
  c = make_config(nonfinite_limit=3, num_steps=30)
  task = toy.make_task(bad_steps=range(8, 30))
  with pytest.raises(nonfinite_rows.NonFiniteError) as caught:
    run(c, task, tmp_path, mesh)
  assert "steps 9 to 11" in str(caught.value)
  dump = json.loads((tmp_path / "nonfinite-11.json").read_text())
  assert list(dump["row_ids"]) == ["9", "10", "11"]
  assert dump["row_ids"]["9"] == list(range(96, 108))  # Of 12 rows.
  params, _ = load.load_params(tmp_path)
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(params))


def test_frozen_changes_are_refused_and_others_logged(tmp_path, mesh, capsys):
  run(make_config(num_steps=3), toy.make_task(), tmp_path, mesh)
  c = make_config(num_steps=5)
  c.optimizer.layer_decay = 0.5
  run(c, toy.make_task(), tmp_path, mesh)
  printed = capsys.readouterr().err
  assert "train.num_steps was 3, now 5" in printed
  assert "optimizer.layer_decay was 1.0, now 0.5" in printed
  c.seed = 9
  for name in ("config.json", "parameters.txt"):
    (tmp_path / name).unlink()
  with pytest.raises(ConfigError, match="seed was 0, now 9"):
    run(c, toy.make_task(), tmp_path, mesh)
  # Files of the other run are not replaced.
  assert not {"config.json", "parameters.txt"} & {
    path.name for path in tmp_path.iterdir()
  }
