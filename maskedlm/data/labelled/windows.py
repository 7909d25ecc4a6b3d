"""Cuts sequences that are longer than a row into overlapping windows.

An item (a word or a token) is in several windows, and its prediction is taken
from one of them. The two functions give different guarantees. `cut_windows`
takes each item from the window in which it has the most context, the distance
to the nearer end of the window (google-research/bert, run_squad.py, "max
context"). `cut_span_windows` is for predictions about spans of words: its
windows overlap by enough words that every span is whole in the window that
keeps its first word. Each is part of what a run computes, so neither can
replace the other.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Window(NamedTuple):
  """Items begin to end - 1; those from keep_begin to keep_end - 1 are used."""

  begin: int
  end: int
  keep_begin: int
  keep_end: int


def cut_windows(
  lengths: Sequence[int] | np.ndarray, capacity: int, *, stride: int = 0
) -> list[Window]:
  """Returns windows of a sequence; exactly one keeps each item.

  Args:
    lengths: tokens of each item; an item longer than capacity counts as
      capacity, and the caller cuts it.
    stride: tokens from the start of a window to that of the next; 0 = half of
      capacity. Reduced if an item would be left out, and for the last window.

  Returns:
    Windows with increasing begin and end; one if everything fits, or if there
    is no item.
  """
  stride = stride or max(capacity // 2, 1)
  starts = _starts(np.minimum(np.asarray(lengths, np.int64), capacity))
  count, spans, begin = len(starts) - 1, [], 0
  while (end := _end(starts, begin, capacity)) < count:
    spans.append((begin, end))
    # Far enough for item `end`, the next one, to fit, but not past its start.
    nearest = _first(starts, starts[end + 1] - capacity)
    begin = min(max(_first(starts, starts[begin] + stride), nearest), end)
  # The last window extends back as far as possible: context costs nothing.
  spans.append((_first(starts, starts[count] - capacity), count))
  return _keep(spans, starts)


def _starts(sizes) -> np.ndarray:
  """Returns the token at which each item starts, and the total: [n + 1]."""
  return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def _first(starts, token: int) -> int:
  """Returns the first item that starts at `token` or later."""
  return int(np.searchsorted(starts, token))


def _end(starts, begin: int, capacity: int) -> int:
  """Returns the end of the items that fit in a window from `begin` on."""
  return int(np.searchsorted(starts, starts[begin] + capacity, "right")) - 1


def _keep(spans: Sequence[tuple[int, int]], starts: np.ndarray) -> list[Window]:
  """Assigns each item to the window with most context, the first if equal."""
  count = len(starts) - 1
  most, owner = np.full(count, -1.0), np.zeros(count, np.int64)
  for i, (begin, end) in enumerate(spans):
    # No context is missing at the ends of the sequence, but accounting for that
    # would change nothing: any other window has less on the same side.
    left = starts[begin:end] - starts[begin]
    right = starts[end] - starts[begin + 1 : end + 1]
    context = np.minimum(left, right)
    owner[begin:end][context > most[begin:end]] = i
    most[begin:end] = np.maximum(most[begin:end], context)
  # From item to item, the later of two windows gains context on the earlier
  # one, so each keeps a contiguous range.
  bounds = np.searchsorted(owner, np.arange(len(spans) + 1))
  return [
    Window(begin, end, int(bounds[i]), int(bounds[i + 1]))
    for i, (begin, end) in enumerate(spans)
    if bounds[i] < bounds[i + 1] or not count
  ]


def cut_span_windows(
  lengths: Sequence[int], capacity: int, *, overlap: int, stride: int = 0
) -> list[Window]:
  """Returns windows of a sentence, for spans scored where their first word is.

  A span of at most overlap + 1 words is whole there, if a row can hold it. Of
  the words that two windows share, each keeps the half for which it has more
  context.

  Args:
    lengths: tokens of each word, at most capacity.
    overlap: minimum number of words that neighbours share.
    stride: tokens from the start of a window to that of the next; 0 = half of
      capacity. Reduced if the overlap requires it.
  """
  stride = stride or max(capacity // 2, 1)
  starts = _starts(lengths)
  count, begins = len(starts) - 1, [0]
  while (end := _end(starts, begins[-1], capacity)) < count:
    begin = begins[-1]
    # The last window extends back as far as possible: context costs nothing.
    last = max(_first(starts, starts[count] - capacity), begin + 1)
    wanted = _first(starts, starts[begin] + stride)
    begins.append(max(min(wanted, end - overlap, last), begin + 1))
  ends = [_end(starts, begin, capacity) for begin in begins]
  bounds = [0]
  for begin, previous_end in zip(begins[1:], ends[:-1], strict=True):
    # From `last` on, spans may not fit.
    last = max(previous_end - overlap, begin)
    bounds.append((begin + last) // 2)
  bounds.append(count)
  return [*map(Window, begins, ends, bounds[:-1], bounds[1:])]
