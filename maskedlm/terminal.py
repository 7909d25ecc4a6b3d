"""The line of progress on a terminal, which what is told next replaces."""

import contextlib
import os
import sys


def fit(text: str) -> str:
  """What of a line fits in the terminal: one that wraps can't be replaced."""
  columns = 0  # Unknown, or no terminal.
  with contextlib.suppress(OSError, ValueError):
    columns = os.get_terminal_size(sys.stderr.fileno()).columns
  return text[: columns - 1] if columns > 1 else text


def clear() -> None:
  """Removes the line of progress, if there is a terminal."""
  if sys.stderr and sys.stderr.isatty():
    print("\r\033[K", end="", file=sys.stderr, flush=True)
