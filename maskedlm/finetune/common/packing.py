"""Packs the short rows of a training batch into few full encoder rows.

The rows of a random batch differ in length. Padding them to the longest would
waste most positions; batches of rows of similar length would not be random,
which costs accuracy (docs/design/decisions/0018-finetuning.md). Packing avoids
both: the encoder reads few full rows in which each of the batch's rows is a
segment that attends only to itself, and masked_lm.encode returns the vectors of
each row separately. The layout is planned once for a run; batches are packed at
each step.

Each of the G microbatches (one per device and accumulation step) is packed
separately, so no data moves between devices. A microbatch has n rows, which are
packed into r encoder rows of S tokens.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.data.batches.bin_packing import first_fit
from maskedlm.data.batches.packed_rows import segment_arrays
from maskedlm.data.batches.token_spans import span_indices
from maskedlm.finetune.contract import Rows

MAX_ROW_COUNTS = 4  # In a layout; each that is used is compiled.
# Packing pays for its compilations only below this share of the unpacked cost.
MAX_COST_RATIO = 0.95
PACKED_ARRAYS = ("input_ids", "token_type_ids")


class RowCosts(NamedTuple):
  """Which encoder rows are considered, and what they cost."""

  lengths: tuple[float, ...]  # S, in units of config.data.length.
  # Time of attention's FLOPs, relative to that of as many in dense layers.
  attention: float
  compiling: float  # The steps that take as long as compiling one.


# Measured on a Xeon with rows of 128, 160, 192 and 256 tokens. Scores take most
# of attention's time there, which is not matmuls. Compiling took 10 steps of
# 4 x 256 there, and 4 of 6 x 384 on an EPYC.
ON_CPU = RowCosts((1, 1.25, 1.5, 2, 4), 3.0, 10)
# Tiles of 128 tokens, so other lengths would be padded. BERT-base's step took
# 102 ms on an H200, and a start without compiled programs 39 s more.
ELSEWHERE = RowCosts((1, 2, 4), 1.0, 300)
# The batches whose forward pass takes as long as compiling it, on a CPU.
COMPILING_FORWARD = 2


class PackingLayout(NamedTuple):
  """The encoder rows that hold a microbatch."""

  length: int  # S.
  counts: tuple[int, ...]  # Compiled values of r; the last one always suffices.


def unpacked_layout(num_rows: int, length: int) -> PackingLayout:
  """Returns the layout in which each row has an encoder row of its own."""
  return PackingLayout(length, (num_rows,))


def cheapest_layout(
  microbatches: Sequence[np.ndarray],
  *,
  length: int,
  width: int,
  costs: RowCosts,
  num_steps: int,
) -> PackingLayout:
  """Returns the cheapest layout for these microbatches, packed or not.

  Longer rows leave less space unused, but need more attention.

  Args:
    microbatches: for each microbatch the lengths [n] of its rows.
    length: config.data.length.
    width: D, the encoder's.
    costs: ON_CPU or ELSEWHERE.
    num_steps: of the run, for which each count is compiled.
  """
  n = len(microbatches[0])

  def cost(rows: float, S: int) -> float:
    # Per token and layer: 24 D^2 FLOPs in matrices, 4 S D in attention.
    return rows * S * (6 * width + costs.attention * S)

  layouts = [(MAX_COST_RATIO * cost(n, length), unpacked_layout(n, length))]
  for S in (int(factor * length) for factor in costs.lengths):
    needed = np.array([first_fit(rows, S)[2] for rows in microbatches])
    steps = costs.compiling * len(needed) / num_steps  # Of the sample.
    counts = choose_row_counts(needed, n, compiling=steps * needed.mean())
    mean = np.array(counts)[np.searchsorted(counts, needed)].mean()
    layouts.append((cost(mean, S), PackingLayout(S, counts)))
  return min(layouts)[1]


def known_layout(
  batches: Sequence[np.ndarray], microbatches: np.ndarray, length: int
) -> PackingLayout:
  """Returns the layout of batches without dropout that are all known.

  Args:
    batches: for each batch the lengths [B, C] of its sequences.
    microbatches: [G, n], from microbatch_rows.
    length: S.
  """
  largest = microbatches.shape[1] * batches[0].shape[1]
  any_count = PackingLayout(length, tuple(range(1, largest + 1)))
  needed = np.array([rows_needed(x, microbatches, any_count) for x in batches])
  compiling = COMPILING_FORWARD * needed.mean()
  counts = choose_row_counts(needed, largest, compiling=compiling)
  return PackingLayout(length, counts)


def choose_row_counts(
  needed: np.ndarray, largest: int, *, compiling: float
) -> tuple[int, ...]:
  """Returns at most MAX_ROW_COUNTS row counts to compile.

  Each value of `needed` is rounded up to the next count. The counts minimise
  the sum of the rounded values, and of `compiling` for each count that is
  used, by dynamic programming. `largest`, at least every value of `needed`, is
  always among them.
  """
  # Adding one value of `largest` adds the same to every sum.
  ends, counts = np.unique([*needed, largest], return_counts=True)
  below = np.cumsum([0, *counts])  # [i]: values less than ends[i].
  last = len(ends) - 1

  def cost(first: int, j: int) -> float:
    """Returns that of rounding ends[first], ..., ends[j] up to ends[j]."""
    n = below[j + 1] - below[first]
    return ends[j] * n + compiling * (n > (j == last))

  # best[j]: (cost of values up to ends[j]; counts), ending with j.
  best: list[tuple[Any, tuple[int, ...]]]
  best = [(cost(0, j), (int(end),)) for j, end in enumerate(ends)]
  for _ in range(MAX_ROW_COUNTS - 1):
    best = [
      min(
        [best[j]]
        + [
          (total + cost(i + 1, j), (*chosen, int(end)))
          for i, (total, chosen) in enumerate(best[:j])
        ]
      )
      for j, end in enumerate(ends)
    ]
  return best[-1][1]


def microbatch_rows(
  batch_size: int, devices: int, accumulate: int
) -> np.ndarray:
  """Returns the batch rows [G, n] of each microbatch.

  Rows are divided as by sharding and by the training step: of a device's rows,
  every accumulate-th is in the same microbatch.
  """
  rows = np.arange(batch_size).reshape(devices, -1, accumulate)
  return rows.swapaxes(1, 2).reshape(devices * accumulate, -1)


def rows_needed(
  lengths: np.ndarray, microbatches: np.ndarray, layout: PackingLayout
) -> int:
  """Returns r for a batch, which its fullest microbatch determines.

  `lengths` [B, C] are those of the sequences of each row, `microbatches` [G, n]
  from microbatch_rows.
  """
  return _fit(lengths, microbatches, layout)[2]


def _fit(lengths, microbatches, layout: PackingLayout):
  """Returns (bins, starts [G, n C] in them, r) by first_fit."""
  fits = [first_fit(lengths[x].ravel(), layout.length) for x in microbatches]
  bins, starts, needed = zip(*fits, strict=True)
  r = layout.counts[np.searchsorted(layout.counts, max(needed))]
  return np.stack(bins), np.stack(starts), r


def pack_batch(
  rows: Rows,
  which: np.ndarray,
  microbatches: np.ndarray,
  layout: PackingLayout,
  *,
  own: np.ndarray,
  length: int,
  pad: int,
) -> dict[str, np.ndarray | dict]:
  """Returns the fields `packed` and `places` of a batch.

  Args:
    rows: those of the split. They may have C sequences each, such as choices.
    which: [B], the rows of the batch; -1 is a filler.
    microbatches: [G, n], from microbatch_rows.
    layout: from cheapest_layout or unpacked_layout.
    own: indices of the microbatches to pack: this host's.
    length: L, to which the vectors of each sequence are padded afterwards.
    pad: id that fills input_ids.

  Returns:
    packed: PACKED_ARRAYS, segment_ids (1, 2, ...; 0 is padding) and positions,
      [G, r, S] each; places [G, n C, L]: indices of each sequence's tokens
      among the r * S of its microbatch.
  """
  S = layout.length
  lengths = rows.sequence_lengths(which)
  bins, starts, r = _fit(lengths, microbatches, layout)
  batch_rows = microbatches[own].ravel()  # Of g microbatches.
  sizes = lengths[batch_rows].reshape(len(own), -1)  # [g, n C]
  starts = starts[own] + S * bins[own]  # Within the microbatch.
  packed = segment_arrays(
    {
      name: _join_sequences(
        rows.tokens[name], which[batch_rows], lengths[batch_rows], fill
      )
      for name, fill in zip(PACKED_ARRAYS, (pad, 0), strict=True)
    },
    (starts + r * S * np.arange(len(own))[:, None]).ravel(),
    sizes.ravel(),
    np.tile(1 + np.arange(sizes.shape[1]), len(own)),
    shape=(len(own), r, S),
    pad=pad,
  )
  places = np.zeros((*sizes.shape, length), np.int32)
  is_token = np.arange(length) < sizes[..., None]
  places[is_token] = span_indices(starts.ravel(), sizes.ravel())
  return {"packed": packed, "places": places}


def _join_sequences(arrays, which, lengths, fill: int) -> np.ndarray:
  """Returns the sequences of these rows, one after the other."""
  filler = np.full((lengths.shape[1], 1), fill, np.int32)
  return np.concatenate(
    [
      sequence[:size]
      for row, sizes in zip(which, lengths, strict=True)
      for sequence, size in zip(
        np.atleast_2d(arrays[row]) if row >= 0 else filler, sizes, strict=True
      )
    ]
  )
