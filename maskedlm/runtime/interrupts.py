"""Turns signals that ask a run to save and stop into an event.

They are SIGTERM, SIGINT (Ctrl-C) and SIGHUP (the terminal is gone), unless
SIGHUP is ignored, as under nohup. In a process that is the command, later
signals don't change what the first one led to, until the process is gone.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

from maskedlm.runtime import console

# Seconds after which a Ctrl-C is another one: launchers may pass one on twice.
PATIENCE = 30

# Whether this process is the command, and no program that calls it.
is_command = threading.Event()


def ignore_further() -> None:
  """Ignores signals, if this process is the command: its exit code is known."""
  if is_command.is_set():
    _handle(dict.fromkeys(_numbers(), signal.SIG_IGN))


@contextlib.contextmanager
def stop_signals() -> Iterator[threading.Event]:
  """Yields an event that a signal sets; a Ctrl-C PATIENCE later raises.

  That is for a run that does not come to save. Outside the main thread no
  signal is handled. In a command, a signal after the block ends it at once with
  75: the training is complete, and the same command does the rest. After a run
  that was stopped, signals are ignored.
  """
  stopped, since = threading.Event(), 0.0

  def stop(number, frame):
    nonlocal since
    del frame
    if not stopped.is_set():
      stopped.set()
      since = time.monotonic()
      with contextlib.suppress(RuntimeError):  # The loop itself is printing.
        console.log(f"{signal.Signals(number).name}: saving, then stopping")
    elif number == signal.SIGINT and time.monotonic() - since > PATIENCE:
      raise KeyboardInterrupt

  old = _handle(dict.fromkeys(_numbers(), stop))
  try:
    yield stopped
    if is_command.is_set():
      old = dict.fromkeys(old, _leave)
  finally:
    if is_command.is_set() and stopped.is_set():
      old = dict.fromkeys(old, signal.SIG_IGN)
    _handle(old)


def _leave(number, frame):
  del frame
  ignore_further()
  with contextlib.suppress(RuntimeError):
    console.log(f"{signal.Signals(number).name}: the same command continues")
    for stream in (sys.stdout, sys.stderr):
      with contextlib.suppress(OSError, ValueError):
        stream.flush()
  # An exception would be lost in a callback, as of a weak reference.
  os._exit(75)


def _numbers() -> list[int]:
  ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
  return [signal.SIGTERM, signal.SIGINT, *([] if ignored else [signal.SIGHUP])]


def _handle(handlers: dict) -> dict:
  """Sets handlers by number; returns those before, {} in other threads."""
  if threading.current_thread() is not threading.main_thread():
    return {}
  return {n: signal.signal(n, handler) for n, handler in handlers.items()}
