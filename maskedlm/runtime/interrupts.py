"""Signals that ask a run to save and end: noted, not obeyed at once."""

import contextlib
import signal
import threading
from collections.abc import Iterator

from maskedlm.runtime import console


@contextlib.contextmanager
def stop_signals() -> Iterator[threading.Event]:
  """Within, a signal sets the event; a second Ctrl-C interrupts.

  These are SIGTERM, Ctrl-C, and that the terminal is gone (SIGHUP), unless it
  was to be ignored, as nohup has it. Outside the main thread there are none.
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
