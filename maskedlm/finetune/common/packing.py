"""Several short rows in one row of the encoder.

The rows of a training batch are random, so of every length. Padded to the
longest they would be mostly padding; sorted by length first, so that those of a
batch are about equal, they would be no random batch any more, and that costs
accuracy (docs/guides/finetune/overview.md). So they are packed: the encoder reads few full
rows, in which each of ours is a segment that sees only itself, and mlm.encode
gives every row its own vectors. Read top-down: what is planned once -> a batch.

A batch is packed in parts, one for each device and microbatch, so that nothing
moves between devices. G is the number of parts, n the rows of one.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

MAX_ROW_COUNTS = 4  # Of a Layout, at most: a compilation each.
MAX_COST_RATIO = 0.95  # Of the cost without packing: to save less pays no compilation.
PACKED_ARRAYS = ("input_ids", "token_type_ids")


class PackingLayout(NamedTuple):
  """The rows of the encoder for a part of a batch."""

  length: int  # S.
  counts: tuple[int, ...]  # r: what is compiled; the last is always enough.


def unpacked_layout(size: int, length: int) -> PackingLayout:
  """Each of `size` rows has one of the encoder's for itself."""
  return PackingLayout(length, (size,))


def cheapest_layout(parts: Sequence[np.ndarray], *, length: int, width: int) -> PackingLayout:
  """The layout that costs least for these parts of batches, packed or not.

  The encoder's rows are `length` long, or two or four times: the longer, the
  less room is left over, and the more attention there is to compute.

  Args:
    parts: the lengths [n] of the rows of each.
    length: config.data.length.
    width: D, of the encoder.
  """
  n = len(parts[0])

  def cost(rows: float, S: int) -> float:
    # Of a token in a layer: 24 D^2 FLOPs in matrices, 4 S D in attention.
    return rows * S * (6 * width + S)

  found = [(MAX_COST_RATIO * cost(n, length), unpacked_layout(n, length))]
  for S in (length, 2 * length, 4 * length):
    needed = np.array([first_fit(part, S)[2] for part in parts])
    counts = choose_row_counts(needed, n)
    mean = np.array(counts)[np.searchsorted(counts, needed)].mean()
    found.append((cost(mean, S), PackingLayout(S, counts)))
  return min(found)[1]


def choose_row_counts(needed: np.ndarray, largest: int) -> tuple[int, ...]:
  """NUM_COUNTS numbers at most, of which each of `needed` takes the next.

  Those with the least sum of what is taken, by dynamic programming; `largest`,
  which is none of the needed ones, is one of them whatever is needed.
  """
  # That one more is said to need `largest` adds the same to every sum.
  ends, counts = np.unique([*needed, largest], return_counts=True)
  below = np.cumsum([0, *counts])  # [i]: how many need less than ends[i].
  # best[j]: (sum of what is taken up to ends[j], the numbers), j the last one.
  best = [(e * n, (int(e),)) for e, n in zip(ends, below[1:], strict=True)]
  for _ in range(MAX_ROW_COUNTS - 1):
    best = [
      min(
        [best[j]]
        + [
          (taken + end * (below[j + 1] - below[i + 1]), (*chosen, int(end)))
          for i, (taken, chosen) in enumerate(best[:j])
        ]
      )
      for j, end in enumerate(ends)
    ]
  return best[-1][1]


def first_fit(
  lengths: np.ndarray, S: int
) -> tuple[np.ndarray, np.ndarray, int]:
  """Rows of these lengths [n] put in rows of S, the longest first.

  Each goes in the first that has room.

  Returns:
    (which [n], where it starts [n], how many are needed).
  """
  room = np.full(len(lengths), S)
  which, starts = np.zeros((2, len(lengths)), np.int64)
  for i in np.argsort(-lengths, kind="stable"):
    which[i] = np.argmax(room >= lengths[i])
    starts[i] = S - room[which[i]]
    room[which[i]] -= lengths[i]
  return which, starts, int(which.max()) + 1


def microbatch_rows(batch_size: int, devices: int, accumulate: int) -> np.ndarray:
  """The rows [G, n] of each part, as sharding and step.gradient_of cut them.

  Of the rows of a device, every accumulate-th is in the same microbatch.
  """
  rows = np.arange(batch_size).reshape(devices, -1, accumulate)
  return rows.swapaxes(1, 2).reshape(devices * accumulate, -1)


def rows_needed(lengths: np.ndarray, parts: np.ndarray, layout: PackingLayout) -> int:
  """r for a batch: as many rows as the part needs that needs most.

  Args:
    lengths: [B, C], of the C sequences of each row.
    parts: from parts_of.
    layout: from fit or alone.
  """
  return _count(_fits(lengths, parts, layout), layout)


def _fits(lengths, parts, layout: PackingLayout):
  """first_fit of each part."""
  return [first_fit(lengths[part].ravel(), layout.length) for part in parts]


def _count(fits, layout: PackingLayout) -> int:
  """r: the smallest of the layout's that is enough for every part."""
  needed = max(count for _, _, count in fits)
  return layout.counts[np.searchsorted(layout.counts, needed)]


def pack_batch(
  sequences: Mapping[str, Sequence[Sequence[np.ndarray]]],
  parts: np.ndarray,
  layout: PackingLayout,
  *,
  own: np.ndarray,
  length: int,
  pad: int,
) -> dict[str, np.ndarray | dict]:
  """The fields `packed` and `places` of a batch.

  Args:
    sequences: of each of SEQUENCES, [B][C] arrays [l]: a row is one sequence,
      or as many as there are choices.
    parts: [G, n], from parts_of.
    layout: from fit or alone.
    own: the parts that are made, of the G: this host's.
    length: L, of the vectors that each sequence is given back.
    pad: the id that fills input_ids.

  Returns:
    packed: SEQUENCES, segment_ids (1, 2, ...; 0 is padding) and positions,
      [G, r, S] each; places [G, n C, L]: where in the r * S vectors of its
      part each sequence's own are.
  """
  S = layout.length
  ids = sequences["input_ids"]
  lengths = np.array([[len(x) for x in row] for row in ids])
  fits = _fits(lengths, parts, layout)
  r = _count(fits, layout)
  packed = {
    name: np.full((len(own), r, S), pad if name == "input_ids" else 0, np.int32)
    for name in (*PACKED_ARRAYS, "segment_ids", "positions")
  }
  C = lengths.shape[1]
  places = np.zeros((len(own), parts.shape[1] * C, length), np.int32)
  for g, part in enumerate(own):
    sizes = lengths[parts[part]].ravel()
    which, starts, _ = fits[part]
    for i, (size, k, begin) in enumerate(
      zip(sizes, which, starts, strict=True)
    ):
      row, c = parts[part, i // C], i % C
      at = g, k, slice(begin, begin + size)
      for name in PACKED_ARRAYS:
        packed[name][at] = sequences[name][row][c]
      packed["segment_ids"][at] = i + 1
      packed["positions"][at] = np.arange(size)
      places[g, i, :size] = k * S + begin + np.arange(size)
  return {"packed": packed, "places": places}
