"""Signals and closed terminals during a run."""

import io
import os
import signal
import threading

import pytest

from helpers import toy
from helpers.toy_runs import make_config, run
from maskedlm.runtime import console, interrupts
from maskedlm.training import loop, metrics
from maskedlm.training.checkpoints import load, manager


def test_signals_are_handled_until_the_last_checkpoint_is_saved(
  tmp_path, mesh, monkeypatch
):
  usual, seen = signal.getsignal(signal.SIGTERM), []
  opened = manager.open_checkpoints

  def watched(*args, **options):
    made = opened(*args, **options)
    close = made.close

    def watched_close():
      close()
      seen.append(signal.getsignal(signal.SIGTERM))

    made.close = watched_close
    return made

  monkeypatch.setattr(manager, "open_checkpoints", watched)
  run(make_config(), toy.make_task(), tmp_path, mesh)
  assert len(seen) == 1 and seen[0] is not usual
  assert signal.getsignal(signal.SIGTERM) is usual


def test_a_signal_during_a_print_stops_the_run(monkeypatch):
  """With a slow reader of stderr, the loop waits in print, which is locked."""

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


def test_a_run_with_a_closed_stderr_still_saves(tmp_path, mesh, monkeypatch):
  """As in `maskedlm ... 2>&1 | tee log`, where Ctrl-C ends tee too."""
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
    with open(os.devnull, "w") as null:  # For buffered text.
      os.dup2(null.fileno(), write)
  assert result.interrupted
  assert load.load_params(tmp_path)[1]["step"] == result.step


def test_only_a_later_ctrl_c_leaves_without_saving(monkeypatch):
  """A launcher may pass one Ctrl-C on twice."""
  clock = [0.0]
  monkeypatch.setattr(interrupts.time, "monotonic", lambda: clock[0])
  with interrupts.stop_signals() as stop:
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
      signal.raise_signal(number)
    clock[0] = interrupts.PATIENCE + 1
    signal.raise_signal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
      signal.raise_signal(signal.SIGINT)
    assert stop.is_set()


def test_a_command_ignores_signals_after_a_run_that_was_stopped(monkeypatch):
  numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
  before = {number: signal.getsignal(number) for number in numbers}
  command = threading.Event()
  command.set()
  monkeypatch.setattr(interrupts, "is_command", command)
  try:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it.
    with interrupts.stop_signals():
      pass
    after = {signal.getsignal(number) for number in numbers}
    assert not after & {signal.SIG_IGN, signal.SIG_DFL, before[signal.SIGINT]}
    with interrupts.stop_signals():
      signal.raise_signal(signal.SIGTERM)
    after = {signal.getsignal(number) for number in numbers}
    assert after == {signal.SIG_IGN}
  finally:
    for number, handler in before.items():
      signal.signal(number, handler)
