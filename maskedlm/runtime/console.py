"""Prints log lines and a progress line; formats tables, right-to-left text."""

import contextlib
import math
import os
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TextIO

from maskedlm.core.measured import to_json


def fit_terminal(text: str) -> str:
  """Cuts a line to the terminal's width; a wrapped one can't be replaced."""
  columns = 0  # Unknown, or no terminal.
  with contextlib.suppress(OSError, ValueError):
    columns = os.get_terminal_size(sys.stderr.fileno()).columns
  return text[: columns - 1] if columns > 1 else text


def warn(text: str, *, end: str = "\n") -> None:
  """Prints to stderr, even if nobody reads it any more or its disk is full.

  In `... 2>&1 | tee log`, Ctrl-C ends tee, and printing fails from then on. All
  messages go through this function, as none is worth the work in progress.
  """
  with contextlib.suppress(OSError, ValueError):  # ValueError: it is closed.
    clear_progress()
    print(f"{text}{end}", end="", file=sys.stderr, flush=True)


def clear_progress() -> None:
  """Removes the progress line, if stderr is a terminal."""
  with contextlib.suppress(OSError, ValueError):
    if is_terminal(sys.stderr):
      print("\r\033[K", end="", file=sys.stderr, flush=True)


def is_terminal(stream: TextIO | None) -> bool:
  """Returns whether a stream, such as sys.stdout, is open, and a terminal."""
  return stream is not None and not stream.closed and stream.isatty()


def log(text: str) -> None:
  """Prints one line to stderr, on host 0."""
  _show(text, end="\n")


def progress(text: str) -> None:
  """Prints a line that the next one replaces; a log line if not a terminal."""
  if is_terminal(sys.stderr):
    _show(fit_terminal(text), end="")
  else:
    _show(text, end="\n")


def _show(text: str, *, end: str) -> None:
  """Prints to stderr on host 0."""
  import jax  # Not needed to show --help.

  if jax.process_index() == 0:
    warn(text, end=end)


def print_json(value: object, *, indent: int | None = None) -> None:
  """Prints JSON to stdout, with escapes if it can't show all characters."""
  encoding = getattr(sys.stdout, "encoding", None)
  unicode = (encoding or "utf-8").lower().startswith("utf")
  print(to_json(value, indent=indent, ascii=not unicode), flush=True)


def format_seconds(seconds: float) -> str:
  """Formats seconds: 3725 -> "1h02m05s"; "?" if they are not finite."""
  if not math.isfinite(seconds):
    return "?"
  minutes, seconds = divmod(round(seconds), 60)
  hours, minutes = divmod(minutes, 60)
  if hours:
    return f"{hours}h{minutes:02d}m{seconds:02d}s"
  return f"{minutes}m{seconds:02d}s" if minutes else f"{seconds}s"


def table(
  columns: Sequence[str], rows: Iterable[Sequence[object]], *, align: str = "<"
) -> list[str]:
  """Formats a table as lines, each column as wide as its widest cell.

  Args:
    rows: cells in the order of the columns; None is shown as "-".
    align: "<" or ">" for each of the first columns; the others are
      right-aligned.
  """
  cells = [columns, *([_cell(x) for x in row] for row in rows)]
  sides = align.ljust(len(columns), ">")
  sizes = [[*map(columns_of, line)] for line in cells]
  widths = [*map(max, zip(*sizes, strict=True))]

  def pad(cell: str, size: int, side: str, width: int) -> str:
    gap = " " * (width - size)
    return cell + gap if side == "<" else gap + cell

  return [
    "  ".join(map(pad, line, size, sides, widths)).rstrip()
    for line, size in zip(cells, sizes, strict=True)
  ]


def columns_of(text: str) -> int:
  """Returns the columns that a text takes: wide characters two, marks none."""
  return sum(
    1 + (unicodedata.east_asian_width(char) in "WF")
    for char in text
    if unicodedata.category(char) not in ("Mn", "Me", "Cf")
  )


def markdown_table(
  columns: Sequence[str], rows: Iterable[Sequence[object]], *, align: str = "<"
) -> list[str]:
  """Formats a table as Markdown; the arguments are those of `table`."""
  rules = {"<": "---", ">": "---:"}
  sides = [rules[side] for side in align.ljust(len(columns), ">")]
  cells = [columns, sides, *([_cell(x) for x in row] for row in rows)]
  return [f"| {' | '.join(line)} |" for line in cells]


def _cell(value: object) -> str:
  return "-" if value is None else str(value)


# First strong isolate and its end (Unicode Standard Annex 9): the text between
# them is laid out separately and doesn't reorder its neighbours.
FSI, PDI = "\u2068", "\u2069"
_RIGHT_TO_LEFT = {"R", "AL", "AN"}  # Hebrew, Arabic, Arabic digits.


def isolate(text: str) -> str:
  """Puts the text between isolate marks if some of it is right-to-left."""
  if any(unicodedata.bidirectional(char) in _RIGHT_TO_LEFT for char in text):
    return f"{FSI}{text}{PDI}"
  return text
