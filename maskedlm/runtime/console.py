"""Lines for the user: log messages and a progress line on stderr."""

import contextlib
import os
import sys
import unicodedata


def fit_terminal(text: str) -> str:
  """What of a line fits in the terminal: one that wraps can't be replaced."""
  columns = 0  # Unknown, or no terminal.
  with contextlib.suppress(OSError, ValueError):
    columns = os.get_terminal_size(sys.stderr.fileno()).columns
  return text[: columns - 1] if columns > 1 else text


def clear_progress() -> None:
  """Removes the line of progress, if there is a terminal."""
  if sys.stderr and sys.stderr.isatty():
    print("\r\033[K", end="", file=sys.stderr, flush=True)


def log(text: str) -> None:
  """One line to the user, from host 0."""
  _show(text, end="\n")


def progress(text: str) -> None:
  """A line that the next one replaces, or a plain line if not a terminal."""
  if sys.stderr.isatty():
    _show(fit_terminal(text), end="")
  else:
    _show(text, end="\n")


def _show(text: str, *, end: str) -> None:
  """Nobody may be there to read it: that ends no run.

  In `... 2>&1 | tee log`, Ctrl-C ends tee, and what is printed of it fails.
  """
  import jax  # Not needed to show --help.

  if jax.process_index() == 0:
    with contextlib.suppress(OSError):
      clear_progress()
      print(text, end=end, file=sys.stderr, flush=True)


def format_seconds(seconds: float) -> str:
  """3725 -> "1h02m05s"."""
  minutes, seconds = divmod(round(seconds), 60)
  hours, minutes = divmod(minutes, 60)
  if hours:
    return f"{hours}h{minutes:02d}m{seconds:02d}s"
  return f"{minutes}m{seconds:02d}s" if minutes else f"{seconds}s"


# First strong isolate, and its end (Unicode Standard Annex 9): text between
# them is laid out by itself and doesn't reorder what stands beside it.
FSI, PDI = "\u2068", "\u2069"
_RIGHT_TO_LEFT = {"R", "AL", "AN"}  # Hebrew, Arabic, Arabic digits.


def isolate(text: str) -> str:
  """The text, between isolate marks if some of it is right-to-left."""
  if any(unicodedata.bidirectional(char) in _RIGHT_TO_LEFT for char in text):
    return f"{FSI}{text}{PDI}"
  return text
