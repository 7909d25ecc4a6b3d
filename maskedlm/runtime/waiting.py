"""Says what happens while nothing is printed."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from maskedlm.runtime import console

QUIET = 5.0  # Seconds after which a wait is explained.
LONG = 30.0  # Seconds without a line that are announced.


@contextlib.contextmanager
def explained(what: str) -> Iterator[None]:
  """Logs what is done if the block takes long, and how long it took.

  Args:
    what: such as "compiling the step".
  """
  began = time.perf_counter()
  timer = threading.Timer(QUIET, console.log, [f"{what} ..."])
  timer.daemon = True
  timer.start()
  try:
    yield
  finally:
    timer.cancel()
    timer.join()
  seconds = time.perf_counter() - began
  if seconds >= QUIET:
    console.log(f"{what} took {console.format_seconds(seconds)}")


def announce_lines(every: int) -> Callable[[], None]:
  """Returns a function to call after each step, in order.

  There is a line every `every` steps. After the third step, when the pace is
  known, the function logs when the first line will come, if that takes more
  than LONG seconds.
  """
  times: list[float] = []

  def ended() -> None:
    if len(times) == 3:
      return
    times.append(time.perf_counter())
    pace = times[-1] - times[-2] if len(times) == 3 else 0.0
    if pace * (every - 3) > LONG:
      console.log(
        f"a step takes {pace:.1f} s; a line follows every {every:,} steps "
        f"(train.log_every), the first in "
        f"{console.format_seconds(pace * (every - 3))}"
      )

  return ended
