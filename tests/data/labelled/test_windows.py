"""Windows: each item is kept once, where it has the most context."""

import random

import numpy as np
import pytest

from maskedlm.data.labelled.windows import Window, cut_span_windows, cut_windows


def test_by_hand():
  # Ten items of one token, four to a window, two further each time: 0-3, 2-5,
  # 4-7, 6-9. Item 2 has one item to its right in the first window, none to its
  # left in the second; item 3 has 0 and 1.
  assert cut_windows([1] * 10, 4, stride=2) == [
    Window(0, 4, 0, 3),
    Window(2, 6, 3, 5),
    Window(4, 8, 5, 7),
    Window(6, 10, 7, 10),
  ]


def test_the_last_window_extends_back():
  # 0-4 is followed by 3-7 to be full, not by 4-7.
  windows = cut_windows([1] * 8, 5, stride=4)
  assert [w[:2] for w in windows] == [(0, 5), (3, 8)]


def brute_force_owner(windows, sizes, capacity):
  """Returns the window with the most context for each item, one by one."""
  sizes = np.minimum(sizes, capacity)
  owners = []
  for item in range(len(sizes)):
    best, owner = -1, None
    for i, (begin, end, _, _) in enumerate(windows):
      if begin <= item < end:
        left = sum(sizes[begin:item]) if begin else np.inf
        right = sum(sizes[item + 1 : end]) if end < len(sizes) else np.inf
        if min(left, right) > best:
          best, owner = min(left, right), i
    owners.append(owner)
  return owners


@pytest.mark.parametrize("seed", range(20))
def test_every_item_is_kept_once_where_it_has_most_context(seed):
  rng = np.random.default_rng(seed)
  sizes = rng.integers(1, rng.choice([2, 5, 12]), size=rng.integers(1, 70))
  capacity, stride = int(rng.integers(3, 17)), int(rng.integers(0, 20))
  windows = cut_windows(sizes, capacity, stride=stride)
  kept = [item for w in windows for item in range(w.keep_begin, w.keep_end)]
  assert kept == list(range(len(sizes)))
  for w in windows:
    assert w.begin <= w.keep_begin < w.keep_end <= w.end
    assert sum(np.minimum(sizes, capacity)[w.begin : w.end]) <= capacity
  owners = brute_force_owner(windows, sizes, capacity)
  expected = [
    i for i, w in enumerate(windows) for _ in range(w.keep_begin, w.keep_end)
  ]
  assert owners == expected


def test_span_windows_by_hand():
  # Ten words of one token, rows of six, spans of at most three words.
  assert cut_span_windows([1] * 10, 6, overlap=2) == [
    (0, 6, 0, 3),  # From word 3 on, the next window has more context.
    (3, 9, 3, 5),
    (4, 10, 5, 10),
  ]
  assert cut_span_windows([1] * 6, 6, overlap=2) == [(0, 6, 0, 6)]
  assert cut_span_windows([], 6, overlap=2) == [(0, 0, 0, 0)]


@pytest.mark.parametrize("seed", range(15))
def test_every_span_is_whole_in_the_one_window_of_its_first_word(seed):
  rng = random.Random(seed)
  capacity = rng.randrange(1, 20)
  most = rng.choice([1, 2, capacity])
  sizes = [rng.randint(1, most) for _ in range(rng.randrange(80))]
  overlap = rng.randrange(capacity)
  stride = rng.choice([0, 1, 3, 50])
  windows = cut_span_windows(sizes, capacity, overlap=overlap, stride=stride)
  keeping = [w for n in windows for w in range(n.keep_begin, n.keep_end)]
  assert keeping == list(range(len(sizes)))
  for window in windows:
    assert sum(sizes[window.begin : window.end]) <= capacity
    for first in range(window.keep_begin, window.keep_end):
      assert window.begin <= first
      for end in range(first + 1, min(first + overlap + 1, len(sizes)) + 1):
        if sum(sizes[first:end]) <= capacity:
          assert end <= window.end
