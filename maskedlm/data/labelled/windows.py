"""Long sequences -> overlapping windows; each item is read off in one of them.

An item (a word, or a token) is seen in several windows. What is said of it
comes from the window in which it has most context: the larger, the nearer of
the window's two ends is (google-research/bert, run_squad.py, "max context").
Where the sequence itself ends no context is missing.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Window(NamedTuple):
  """Items begin to end - 1; those from keep_begin to keep_end - 1 count."""

  begin: int
  end: int
  keep_begin: int
  keep_end: int


def cut_windows(
  lengths: Sequence[int], capacity: int, *, stride: int = 0
) -> list[Window]:
  """The windows of a sequence: every item is kept by exactly one.

  Args:
    lengths: tokens of each item; one longer than capacity counts as capacity,
      and is to be cut.
    capacity: the most tokens of a window.
    stride: tokens from a window's begin to the next one's; 0 = half of
      capacity. It is less where an item would be left out, and for the last.

  Returns:
    Windows with growing begin and end; one if all fits, or there is nothing.
  """
  stride = stride or max(capacity // 2, 1)
  sizes = np.minimum(np.asarray(lengths, np.int64), capacity)
  starts = np.concatenate([[0], np.cumsum(sizes)])  # Of items, in tokens.

  def first(place: int) -> int:  # The first item that starts there or later.
    return int(np.searchsorted(starts, place))

  count, spans, begin = len(sizes), [], 0
  while True:
    # The end of the last item that ends within capacity.
    end = int(np.searchsorted(starts, starts[begin] + capacity, "right")) - 1
    if end == count:
      break
    spans.append((begin, end))
    # Far enough to hold the next item, and not so far as to leave it out.
    reaching = first(starts[end + 1] - capacity)
    begin = min(max(first(starts[begin] + stride), reaching), end)
  # The last one reaches back as far as it can: context costs nothing.
  spans.append((first(starts[count] - capacity), count))
  return _keep(spans, starts)


def _keep(spans: Sequence[tuple[int, int]], starts: np.ndarray) -> list[Window]:
  """Gives each item to the window with most context, the first of equals."""
  count = len(starts) - 1
  most, owner = np.full(count, -1.0), np.zeros(count, np.int64)
  for i, (begin, end) in enumerate(spans):
    # Where the sequence itself ends none is missing, but to count it so would
    # change nothing: any other window has less on that very side.
    left = starts[begin:end] - starts[begin]
    right = starts[end] - starts[begin + 1 : end + 1]
    context = np.minimum(left, right)
    owner[begin:end][context > most[begin:end]] = i
    most[begin:end] = np.maximum(most[begin:end], context)
  # Of two windows the later gains with every item: what each keeps is a range.
  bounds = np.searchsorted(owner, np.arange(len(spans) + 1))
  return [
    Window(begin, end, int(bounds[i]), int(bounds[i + 1]))
    for i, (begin, end) in enumerate(spans)
    if bounds[i] < bounds[i + 1] or not count
  ]
