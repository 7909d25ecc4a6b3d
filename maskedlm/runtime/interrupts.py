"""Turns signals that ask a run to save and stop into an event."""

import contextlib
import signal
import threading
from collections.abc import Iterator

from maskedlm.runtime import console


@contextlib.contextmanager
def stop_signals() -> Iterator[threading.Event]:
  """Yields an event that a signal sets; a second Ctrl-C raises at once.

  The signals are SIGTERM, SIGINT (Ctrl-C) and SIGHUP (the terminal is gone),
  unless SIGHUP is ignored, as under nohup. Outside the main thread no signal is
  handled.
  """
  stopped, old = threading.Event(), {}

  def stop(number, frame):
    del frame
    if stopped.is_set() and number == signal.SIGINT:
      raise KeyboardInterrupt
    stopped.set()
    with contextlib.suppress(RuntimeError):  # The loop itself is printing.
      console.log(f"{signal.Signals(number).name}: saving, then stopping")

  if threading.current_thread() is threading.main_thread():
    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
      numbers.append(signal.SIGHUP)
    old = {number: signal.signal(number, stop) for number in numbers}
  try:
    yield stopped
  finally:
    for number, handler in old.items():
      signal.signal(number, handler)
