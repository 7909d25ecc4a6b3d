"""Several short rows in one: which rows share one, and where each goes.

A packed row holds whole rows of another source side by side, each a segment
with positions of its own, so that a model that attends by segment id computes
for each just what it would compute for it alone. Which rows share one is
fixed by their lengths when the table is built, at the first batch; which packed
rows a step has is a hash, as for any source (epochs.py).
"""

import functools
import threading
from collections import deque
from collections.abc import Callable, Iterable

import numpy as np

from maskedlm.data import hashing
from maskedlm.data.batches import batching, row_tables
from maskedlm.data.batches.batching import Source

_VERSION = 1  # Of the rule by which rows are packed.
_INDEX = np.dtype("<i8")


def max_segments(length: int) -> int:
  """G: at most this many rows share one of `length` tokens."""
  return max(1, length // 8)


def packed(open_source: Callable[..., Source]) -> Callable[..., Source]:
  """open_source of epochs.make_batches, for the packed rows of a source."""

  def open_packed(corpus, name, length, seed):
    return pack(corpus, open_source(corpus, name, length, seed), length=length)

  return open_packed


def pack(corpus, source: Source, *, length) -> Source:
  """The packed rows of a source.

  Args:
    corpus: store.Corpus.
    source: what to pack. Its arrays [b, L] hold one value for each token, and
      its segment_ids tell the real ones; its arrays [b] one for each row.
    length: L.

  Returns:
    A Source of the same arrays, those [b] as [b, G], and besides segment_ids
    [b, L] 1, 2, ... (0 on padding), positions [b, L] from 0 in each segment,
    cls_positions [b, G] each segment's first token, and segment_weights
    [b, G] float32, 0 where the row has fewer than G segments.
  """
  special = corpus.tokenizer.special
  G = max_segments(length)
  counts = row_tables.open_table(  # Rows of each length, 0 to L.
    corpus,
    ["lengths", _VERSION, source.seed, length, source.key],
    _INDEX,
    lambda: [np.bincount(source.lengths(), minlength=length + 1)],
  )
  num_rows = sum(count for _, count in _patterns(counts, length, G))
  lock = threading.Lock()

  @functools.cache
  def open_columns() -> tuple[np.ndarray, np.ndarray]:
    """(members, starts), made when the first rows are read.

    Where packing doesn't pay, all that is asked is how many there would be.
    """
    compose = functools.cache(
      lambda: _compose(source.lengths(), length, G, seed=source.seed)
    )

    def column(index, name):
      return row_tables.open_table(
        corpus,
        ["packed", name, _VERSION, source.seed, length, G, source.key],
        _INDEX,
        lambda: [compose()[index]],
      )

    return column(0, "members"), column(1, "starts")

  def read(row, epoch):
    with lock:  # Several threads read.
      members, starts = open_columns()
    first = starts[row][:, None]
    slot = np.arange(G)
    used = slot < starts[row + 1][:, None] - first
    which = members[(first + slot)[used]]
    parts = source.read(which, np.repeat(epoch, used.sum(1)))
    return _side_by_side(parts, used, length, special.pad)

  return Source(num_rows, source.seed, read)


def padding_share(batch_at, split: str, steps: Iterable[int]) -> float:
  """Share of padding among the positions of these steps' batches."""
  real = total = 0
  for step in steps:
    segment_ids = batch_at(split, step)["segment_ids"]
    real += np.count_nonzero(segment_ids)
    total += segment_ids.size
  return 1 - real / total


def attended_pairs(segment_ids) -> float:
  """Pairs of positions that see each other in a mean row of [b, L].

  The sum of its segments' squared sizes, padding apart: what attention is
  there to compute.
  """
  b, num = len(segment_ids), segment_ids.max() + 1
  rows = np.arange(b)[:, None] * num
  sizes = np.bincount((rows + segment_ids).reshape(-1), minlength=b * num)
  return float(np.sum(sizes.reshape(b, num)[:, 1:] ** 2) / b)


def step_cost(
  row_cost: Callable[[int, float | None], float],
  batch_at: Callable,
  config,
  *,
  packed: bool,
) -> Callable[[int], float]:
  """-> step -> what its rows cost, all together.

  Args:
    row_cost: (length, attended pairs of a row, or None for all) -> its cost.
    batch_at: (split, step) -> batch.
    config: the whole config: the phases' shapes.
    packed: rows hold several segments; what they attend to is estimated for
      all of a phase from its first batch.
  """

  @functools.cache
  def attended(first_step: int) -> float:
    return attended_pairs(batch_at("train", first_step)["segment_ids"])

  def cost(step: int) -> float:
    shape = batching.shape_at(step, config.train.num_steps, config.data)
    pairs = attended(shape.first_step) if packed else None
    return shape.num_rows * row_cost(shape.length, pairs)

  return cost


def _side_by_side(parts, used, L, pad) -> dict[str, np.ndarray]:
  """Arrays of n rows, as those of b packed rows; used [b, G] has n trues."""
  b, G = used.shape
  real = parts["segment_ids"] > 0
  size = np.zeros((b, G), np.int64)
  size[used] = real.sum(1)
  begin = np.cumsum(size, axis=1) - size
  flat_begin = (begin + L * np.arange(b)[:, None])[used]
  column = np.arange(L)
  target = (flat_begin[:, None] + column)[real]
  slot = np.broadcast_to(np.arange(G), (b, G))[used]

  def by_token(values, fill=0):
    out = np.full(b * L, fill, np.int32)
    out[target] = np.broadcast_to(values, real.shape)[real]
    return out.reshape(b, L)

  def by_segment(values, dtype=np.int32):
    out = np.zeros((b, G), dtype)
    out[used] = values
    return out

  packed = {
    name: by_token(values) if values.ndim == 2 else by_segment(values)
    for name, values in parts.items()
  }
  return {
    **packed,
    "input_ids": by_token(parts["input_ids"], pad),
    "segment_ids": by_token(slot[:, None] + 1),
    "positions": by_token(column),
    "cls_positions": by_segment(begin[used]),
    "segment_weights": by_segment(1, np.float32),
  }


def _compose(lengths, L, G, *, seed) -> tuple[np.ndarray, np.ndarray]:
  """Which rows share one: (members [R], starts [M + 1]), int64.

  Packed row m holds the rows members[starts[m] : starts[m + 1]]. The rows of
  a length are dealt out in random order, so that neighbours in the text come
  apart.
  """
  rank = hashing.bits(seed, "pack", np.arange(len(lengths)))
  order = np.lexsort((rank, lengths))
  counts = np.bincount(lengths, minlength=L + 1)
  taken = np.cumsum(counts) - counts  # Of each length: the next one's place.
  members, sizes = [], [np.zeros(1, np.int64)]
  for pattern, count in _patterns(counts, L, G):
    slots = []
    for length in pattern:
      slots.append(order[taken[length] : taken[length] + count])
      taken[length] += count
    members.append(np.stack(slots, axis=1).reshape(-1))
    sizes.append(np.full(count, len(pattern)))
  return np.concatenate(members), np.cumsum(np.concatenate(sizes))


def _patterns(counts, L, G) -> list[tuple[tuple[int, ...], int]]:
  """(lengths that share a row, number of such rows): best fit, longest first.

  By the histogram of lengths [L + 1], as rows of a length are alike: takes
  the same time for any number of rows (Krell et al., arXiv:2107.02027).
  """
  # By the space that is left: patterns of fewer than G lengths, with counts.
  spaces = [deque() for _ in range(L + 1)]
  closed = []

  def put(pattern, count):
    space = L - sum(pattern)
    (spaces[space] if len(pattern) < G else closed).append((pattern, count))

  for length in range(L, 0, -1):
    left = int(counts[length])
    while left:
      tightest = next((s for s in spaces[length:] if s), None)
      if tightest is None:  # As many new rows as hold what is left.
        count = -(-left // min(L // length, G))
        put((length,), count)
        left -= count
        continue
      pattern, count = tightest.popleft()
      placed = min(count, left)
      put((*pattern, length), placed)
      if placed < count:
        tightest.append((pattern, count - placed))
      left -= placed
  return [*closed, *(item for space in spaces for item in space)]
