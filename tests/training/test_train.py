"""The loop: logs, evaluates, checkpoints, stops, resumes; on a toy task."""

import errno
import io
import itertools
import json
import os
import signal
import struct
import types

import jax
import numpy as np
import pytest

from helpers import toy
from helpers.toy_runs import make_config, run
from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console, interrupts
from maskedlm.training import loop, metrics, optimizer, sharding
from maskedlm.training.checkpoints import files, load, manager


@pytest.fixture(scope="module")
def mesh():
  c = defaults.default()
  return sharding.make_mesh(c.mesh, jax.devices()[:2])


def lines(workdir):
  return [
    json.loads(line)
    for line in (workdir / "metrics.jsonl").read_text().splitlines()
  ]


def steady(workdir):
  """The lines without what depends on the machine."""
  return [
    {k: v for k, v in x.items() if k != "tokens_per_second"}
    for x in lines(workdir)
  ]


def board_events(workdir):
  """Of TensorBoard's only file: records of 8 + 4 bytes, the event, 4 bytes."""
  (file,) = (workdir / "tensorboard").iterdir()
  data, found = file.read_bytes(), []
  while data:
    (size,) = struct.unpack("<Q", data[:8])
    event = metrics._import_tensorboardx().proto.event_pb2.Event()
    found.append(event.FromString(data[12 : 12 + size]))
    data = data[16 + size :]
  return found


def test_a_run_logs_evaluates_and_keeps_checkpoints(tmp_path, mesh):
  c = make_config()
  result = run(c, toy.make_task(), tmp_path, mesh)
  assert result.step == 10 and not result.interrupted
  assert result.tokens_per_second > 0
  logged = lines(tmp_path)
  # Every second step, and what a checkpoint goes on from: 3, 6, 9.
  assert [x["step"] for x in logged if "loss" in x] == [2, 3, 4, 6, 8, 9, 10]
  assert [x["step"] for x in logged if "heldout/loss" in x] == [4, 8, 10]
  for name in ("learning_rate", "gradient_norm", "real_share", "error"):
    assert name in logged[0]
  # The learning rate of steps 0 and 1 (warm-up of 2), averaged.
  assert logged[0]["learning_rate"] == pytest.approx(0.01 * (0 + 0.5) / 2)
  # A line is of the steps since the one before, and of no others.
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


def test_every_held_out_batch_counts(mesh):
  task = toy.make_task(num_heldout_batches=6)._replace(
    score=lambda outputs: {"order": [x["i"] for x in outputs]}
  )

  def heldout_step(params, batch, i):  # Weights of 1, 2, ... 6.
    return {"a": (2.0**i, i + 1.0)}, {"m": (3.0**i, i + 1.0)}, {"i": i}

  found = loop.evaluate(task, heldout_step, None, mesh, lambda: False)
  # 1 + 2 + ... + 32, and 1 + 3 + ... + 243, of 21.
  assert found == {
    "loss": 63 / 21,
    "m": pytest.approx(364 / 21),
    "order": [0, 1, 2, 3, 4, 5],
  }


@pytest.mark.parametrize(("keep_best", "kept"), [(1, [8, 10]), (0, [10])])
def test_what_is_evaluated_can_be_kept(
  tmp_path, mesh, monkeypatch, keep_best, kept
):
  """Evaluated after 4, 8 and 10 steps, saved by the clock after 3, 6 and 9."""
  losses = iter([3.0, 1.0, 2.0])
  monkeypatch.setattr(loop, "evaluate", lambda *_: {"loss": next(losses)})
  run(
    make_config(keep_last=1, keep_best=keep_best),
    toy.make_task(),
    tmp_path,
    mesh,
  )
  found = [p.name for p in (tmp_path / "checkpoints").iterdir()]
  assert sorted(int(name) for name in found if name.isdigit()) == kept


def test_the_last_step_is_compiled_before_the_first(
  tmp_path, mesh, monkeypatch
):
  """A second phase that doesn't fit ends no run in the middle."""

  def compile_for(step, state, batch):
    np.testing.assert_array_equal(
      batch["x"], toy.make_task().batch_at("train", 9)["x"]
    )
    raise ConfigError("it does not fit")

  monkeypatch.setattr(loop.steps, "compile_for", compile_for)
  with pytest.raises(ConfigError, match="not fit"):
    run(make_config(), toy.make_task(), tmp_path, mesh)
  assert not (tmp_path / "metrics.jsonl").exists()


def test_signals_are_ours_until_the_last_checkpoint_is_there(
  tmp_path, mesh, monkeypatch
):
  usual, seen = signal.getsignal(signal.SIGTERM), []
  opened = manager.open_checkpoints

  def watched(*args, **options):
    made = opened(*args, **options)

    def close():
      made.close()
      seen.append(signal.getsignal(signal.SIGTERM))

    return made._replace(close=close)

  monkeypatch.setattr(manager, "open_checkpoints", watched)
  run(make_config(), toy.make_task(), tmp_path, mesh)
  assert len(seen) == 1 and seen[0] is not usual
  assert signal.getsignal(signal.SIGTERM) is usual


def test_a_signal_while_a_line_is_printed_stops_as_any_other(monkeypatch):
  """A slow reader of stderr has the loop wait within print, which is locked."""

  class Slow(io.RawIOBase):
    def writable(self):
      return True

    def write(self, data):
      if bytes(data) == b"step 1\n":
        signal.raise_signal(signal.SIGTERM)
      return len(data)

  stderr = io.TextIOWrapper(io.BufferedWriter(Slow()))
  with monkeypatch.context() as patch, interrupts.stop_signals() as stopped:
    patch.setattr(loop.metrics.sys, "stderr", stderr)
    console.progress("step 1")
  assert stopped.is_set()


@pytest.mark.parametrize("ignored", [False, True])
def test_a_lost_terminal_stops_a_run_but_not_under_nohup(ignored):
  usual = signal.SIG_IGN if ignored else signal.SIG_DFL
  before = signal.signal(signal.SIGHUP, usual)
  try:
    with interrupts.stop_signals() as stopped:
      signal.raise_signal(signal.SIGHUP)
    assert stopped.is_set() is not ignored
    assert signal.getsignal(signal.SIGHUP) is usual
  finally:
    signal.signal(signal.SIGHUP, before)


def test_a_run_whose_lines_nobody_reads_saves_and_goes_on(
  tmp_path, mesh, monkeypatch
):
  """`maskedlm ... 2>&1 | tee log`: Ctrl-C ends tee as well."""
  read, write = os.pipe()
  os.close(read)
  task = toy.make_task()

  def batch_at(split, step):
    if split == "train" and step == 5:
      signal.raise_signal(signal.SIGINT)
    return task.batch_at(split, step)

  with open(write, "w") as gone, monkeypatch.context() as patch:
    patch.setattr(metrics.sys, "stderr", gone)
    c = make_config(checkpoint_every=100, eval_every=100)
    result = run(c, task._replace(batch_at=batch_at), tmp_path, mesh)
    patch.undo()
    with open(os.devnull, "w") as null:  # For what is left in it.
      os.dup2(null.fileno(), write)
  assert result.interrupted
  assert load.load_params(tmp_path)[1]["step"] == result.step


def test_stopping_and_resuming_changes_nothing(tmp_path, mesh):
  c = make_config(log_every=5)
  whole = run(c, toy.make_task(), tmp_path / "whole", mesh)
  half = tmp_path / "half"
  stop_after = 7

  def stop_at(task):
    """The same task, which raises where the process would be killed."""

    def batch_at(split, step):
      if split == "train" and step == stop_after:
        raise KeyboardInterrupt
      return task.batch_at(split, step)

    return task._replace(batch_at=batch_at)

  with pytest.raises(KeyboardInterrupt):
    run(c, stop_at(toy.make_task()), half, mesh)
  resumed = run(c, toy.make_task(), half, mesh)
  for a, b in zip(
    jax.tree.leaves(whole.params), jax.tree.leaves(resumed.params), strict=True
  ):
    np.testing.assert_array_equal(a, b)
  assert resumed.heldout == whole.heldout
  # Nor the log: a line is of the same steps, the repeated ones are there once.
  assert steady(half) == steady(tmp_path / "whole")


# The loop asks whether to stop after each step, each held-out batch (of which
# there are two) and each evaluation: at its 4th question it is about to
# evaluate step 4, at the 5th it is in the middle of that.
@pytest.mark.parametrize(
  ("question", "stopped_at", "looked_at"),
  [
    (3, 3, []),
    (4, 4, []),
    (5, 4, []),
    (6, 4, []),
    (7, 4, [4]),
    (8, 5, [4]),
    (17, 10, [4, 8]),
    (18, 10, [4, 8]),
  ],
)
def test_a_stop_loses_no_evaluation(
  tmp_path, mesh, monkeypatch, question, stopped_at, looked_at
):
  c = make_config(log_every=1, keep_last=9)
  run(c, toy.make_task(), tmp_path / "whole", mesh)
  questions = itertools.count(1)
  with monkeypatch.context() as patched:
    patched.setattr(
      loop.multihost,
      "any_host",
      lambda flag, delay: lambda: next(questions) >= question,
    )
    stopped = run(c, toy.make_task(), tmp_path / "half", mesh)
  assert stopped.interrupted and stopped.step == stopped_at
  assert (tmp_path / "half" / "checkpoints" / str(stopped_at)).is_dir()
  found = [x["step"] for x in lines(tmp_path / "half") if "heldout/loss" in x]
  assert found == looked_at
  run(c, toy.make_task(), tmp_path / "half", mesh)
  assert steady(tmp_path / "half") == steady(tmp_path / "whole")
  # What was measured then can be the best, as if it had been saved with it.
  ranks = [
    {
      step: files.read_record(checkpoints / str(step))["metric"]
      for step in files.ranked_steps(checkpoints)
    }
    for checkpoints in (tmp_path / w / "checkpoints" for w in ("whole", "half"))
  ]
  assert ranks[0] == ranks[1] and set(ranks[0]) == {4, 8, 10}


def test_a_finished_run_evaluates_again_and_trains_no_more(
  tmp_path, mesh, capsys
):
  first = run(make_config(), toy.make_task(), tmp_path, mesh)
  again = run(make_config(), toy.make_task(), tmp_path, mesh)
  assert again.heldout == first.heldout
  assert again.step == 10 and again.tokens_per_second is None
  assert "continuing from the checkpoint of step 10 of 10" in (
    capsys.readouterr().err
  )


def test_single_nonfinite_steps_are_skipped_and_logged(tmp_path, mesh, capsys):
  c = make_config(nonfinite_limit=3, checkpoint_every=2)
  result = run(c, toy.make_task(bad_steps=(2, 3, 6)), tmp_path, mesh)
  assert result.step == 10
  assert np.isfinite(result.heldout["loss"])
  assert [x["skipped"] for x in lines(tmp_path) if "skipped" in x] == [
    0,
    1,
    0,
    0.5,
    0,
  ]
  assert "2 of the last 2 steps were skipped" in capsys.readouterr().err


def test_many_in_a_row_stop_the_run_with_the_rows(tmp_path, mesh):
  c = make_config(nonfinite_limit=3, num_steps=30)
  task = toy.make_task(bad_steps=range(8, 30))
  with pytest.raises(loop.NonFiniteError) as caught:
    run(c, task, tmp_path, mesh)
  assert "steps 9 to 11" in str(caught.value)
  dump = json.loads((tmp_path / "nonfinite-11.json").read_text())
  assert list(dump["row_ids"]) == ["9", "10", "11"]
  assert dump["row_ids"]["9"] == list(range(96, 108))  # Step index 8, 12 rows.
  params, _ = load.load_params(tmp_path)
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(params))


def test_a_frozen_change_is_refused_and_a_free_one_told(tmp_path, mesh, capsys):
  run(make_config(num_steps=3), toy.make_task(), tmp_path, mesh)
  c = make_config(num_steps=5)
  c.optimizer.layer_decay = 0.5
  run(c, toy.make_task(), tmp_path, mesh)
  told = capsys.readouterr().err
  assert "train.num_steps was 3, now 5" in told
  assert "optimizer.layer_decay was 1.0, now 0.5" in told
  c.seed = 9
  for name in ("config.json", "parameters.txt"):
    (tmp_path / name).unlink()
  with pytest.raises(ConfigError, match="seed was 0, now 9"):
    run(c, toy.make_task(), tmp_path, mesh)
  # What there is of the other run is left as it is.
  assert not {"config.json", "parameters.txt"} & {
    path.name for path in tmp_path.iterdir()
  }


def test_a_full_disk_costs_no_line_of_the_log(tmp_path, monkeypatch):
  path = tmp_path / "metrics.jsonl"
  path.write_text('{"step": 1}\n{"step": 9}\n{"ste')

  def full(descriptor):
    raise OSError(errno.ENOSPC, "No space left on device")

  with monkeypatch.context() as patch:
    patch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
      metrics.open_logbook(tmp_path, 5, 10, lambda step: 0)
  assert path.read_text() == '{"step": 1}\n{"step": 9}\n{"ste'
  metrics.open_logbook(tmp_path, 5, 10, lambda step: 0).close()
  assert path.read_text() == '{"step": 1}\n'


def test_a_kill_costs_no_event(tmp_path):
  """What is logged is in the file at once, whole, as TensorBoard reads it."""
  book = metrics.open_logbook(tmp_path, 0, 10, lambda step: 0)
  for step in (1, 2):
    book.heldout(step, {"loss": step / 2})
    found = [x for x in board_events(tmp_path) if x.HasField("summary")]
    assert [(x.step, x.summary.value[0].simple_value) for x in found] == [
      (s, s / 2) for s in range(1, step + 1)
    ]
  book.close()
  (file,) = (tmp_path / "tensorboard").iterdir()
  loader = metrics._import_tensorboardx().record_writer
  whole = tmp_path / "theirs"
  theirs = loader.RecordWriter(str(whole))
  for event in board_events(tmp_path):
    theirs.write(event.SerializeToString())
  theirs.close()
  assert file.read_bytes() == whole.read_bytes()


def test_a_full_disk_does_not_hold_the_run(tmp_path, monkeypatch):
  book = metrics.open_logbook(tmp_path, 5, 10, lambda step: 0)
  book.heldout(6, {"loss": 1.0})
  book.close()
  *_, restart, event = board_events(tmp_path)
  assert restart.session_log.status == restart.session_log.START
  assert (restart.step, event.step) == (6, 6)  # What was after 5 is gone.
  folder = tmp_path / "tensorboard"
  folder.rename(tmp_path / "before")
  folder.mkdir()
  monkeypatch.setattr(metrics.time, "time", lambda: 7.0)
  monkeypatch.setattr(metrics.socket, "gethostname", lambda: "h")
  (folder / "events.out.tfevents.7.h").symlink_to("/dev/full")
  with pytest.raises(OSError, match="No space left"):
    metrics.open_logbook(tmp_path, 5, 10, lambda step: 0)


@pytest.mark.parametrize(
  ("kind", "peak"),
  [
    ("NVIDIA H100 80GB HBM3", 2 * 989e12),
    ("NVIDIA H100 PCIe", 2 * 756e12),
    ("TPU v5 lite", 2 * 197e12),
    ("cpu", None),
  ],
)
def test_the_peak_is_of_the_devices_that_are_there(monkeypatch, kind, peak):
  device = types.SimpleNamespace(device_kind=kind)
  monkeypatch.setattr(jax, "devices", lambda: [device] * 2)
  monkeypatch.setattr(jax, "device_count", lambda: 2)
  assert metrics.peak_flops() == peak


def test_one_term_is_the_loss_and_shown_once():
  shown = metrics.format_values
  one = {"loss": 7.312, "mlm_loss": 7.31, "mlm_accuracy": 0.121}
  assert shown(one) == "loss 7.312 | mlm_accuracy 12.1%"
  two = {"loss": 7.5, "mlm_loss": 7.0, "nsp_loss": 0.5}
  assert shown(two) == "loss 7.500 | mlm_loss 7.000 | nsp_loss 0.500"
  more = {"loss": 7.5, "mlm_loss": 7.0}  # A penalty that has no name.
  assert shown(more) == "loss 7.500 | mlm_loss 7.000"
  assert shown({"accuracy": 0.5}) == "accuracy 50.0%"
