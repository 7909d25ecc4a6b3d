"""Decides by bin packing which short rows share a long one.

There are two algorithms because they pack different things, and the result of
each is part of what a run computes. Pretraining packs all rows of a split at
once, up to billions of them, so `best_fit` works on the histogram of their
lengths (Krell et al., arXiv:2107.02027). Fine-tuning packs the few rows of part
of a batch at every step and needs the number of bins: `first_fit`.
"""

from collections import deque
from collections.abc import Iterator

import numpy as np

from maskedlm.data import hashing

# Inference packs rows of up to this length into rows of this length. Longer
# ones leave less unused, but cost more attention.
SHARED_LENGTH = 128


def first_fit(
  lengths: np.ndarray, capacity: int
) -> tuple[np.ndarray, np.ndarray, int]:
  """Packs items of lengths [n], longest first, each in the first bin with room.

  Returns:
    (bin [n] of each item, its start [n] in the bin, number of bins).
  """
  room = np.full(len(lengths), capacity)
  bins, starts = np.zeros((2, len(lengths)), np.int64)
  for i in np.argsort(-lengths, kind="stable"):
    bins[i] = np.argmax(room >= lengths[i])
    starts[i] = capacity - room[bins[i]]
    room[bins[i]] -= lengths[i]
  return bins, starts, int(bins.max()) + 1


def shared_buckets(lengths, buckets) -> Iterator[tuple[int, np.ndarray]]:
  """Yields (L, the rows that are read at length L).

  The longest are first, so that a lack of memory shows at once. A row, of
  `lengths` [n] tokens, is read at the smallest bucket that holds it; rows of up
  to SHARED_LENGTH tokens have one bucket. Buckets increase, and the last holds
  every row.
  """
  buckets = np.asarray(buckets)
  shared = np.maximum(lengths, min(SHARED_LENGTH, buckets[-1]))
  needed = buckets[np.searchsorted(buckets, shared)]
  for L in map(int, np.unique(needed)[::-1]):
    yield L, np.flatnonzero(needed == L)


def best_fit(
  lengths, capacity: int, max_items: int, *, seed
) -> tuple[np.ndarray, np.ndarray]:
  """Packs items of lengths [n] by best_fit_patterns.

  Items of equal length are dealt out in random order, so that neighbours in the
  text are separated.

  Returns:
    (members [n], starts [M + 1]), int64: bin m holds the items
    members[starts[m] : starts[m + 1]].
  """
  rank = hashing.bits(seed, "pack", np.arange(len(lengths)))
  order = np.lexsort((rank, lengths))
  counts = np.bincount(lengths, minlength=capacity + 1)
  taken = np.cumsum(counts) - counts  # Place of the next item of each length.
  members, sizes = [], [np.zeros(1, np.int64)]
  for pattern, count in best_fit_patterns(counts, capacity, max_items):
    slots = []
    for length in pattern:
      slots.append(order[taken[length] : taken[length] + count])
      taken[length] += count
    members.append(np.stack(slots, axis=1).reshape(-1))
    sizes.append(np.full(count, len(pattern)))
  return np.concatenate(members), np.cumsum(np.concatenate(sizes))


def best_fit_patterns(
  counts, capacity: int, max_items: int
) -> list[tuple[tuple[int, ...], int]]:
  """Returns pairs (lengths that share a bin, number of such bins).

  Packs longest first, each length into the fullest bin that has room, and all
  items of a length at once, so the time does not depend on their number:
  `counts` [capacity + 1] for each length. A bin has at most max_items.
  """
  # spaces[s]: patterns that leave s and take more items, with their counts.
  spaces: list[deque] = [deque() for _ in range(capacity + 1)]
  closed: list[tuple[tuple[int, ...], int]] = []

  def put(pattern, count):
    space = capacity - sum(pattern)
    open_ = len(pattern) < max_items
    (spaces[space] if open_ else closed).append((pattern, count))

  for length in range(capacity, 0, -1):
    remaining = int(counts[length])
    while remaining:
      tightest = next((s for s in spaces[length:] if s), None)
      if tightest is None:  # Opens as many bins as the remaining items need.
        count = -(-remaining // min(capacity // length, max_items))
        put((length,), count)
        remaining -= count
        continue
      pattern, count = tightest.popleft()
      placed = min(count, remaining)
      put((*pattern, length), placed)
      if placed < count:
        tightest.append((pattern, count - placed))
      remaining -= placed
  return [*closed, *(item for space in spaces for item in space)]
