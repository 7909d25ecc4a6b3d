"""Batches of rows of different lengths: a pure function of (rows, seed, step).

Batches are packed (packing.py). Those of training are random and contain each
row once per epoch; those of evaluation and inference are even samples of the
lengths, so that each fills about as many encoder rows. The last may end in
filler rows of weight 0. Only a few shapes are compiled.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.task import Batch
from maskedlm.data.batches import bin_packing
from maskedlm.data.batches.row_source import host_slice, shuffle
from maskedlm.finetune.common import packing
from maskedlm.finetune.common.packing import PackingLayout
from maskedlm.finetune.contract import Rows

_SAMPLE = 300  # Batches per epoch that estimate layouts and shares.


class RowBatches(NamedTuple):
  """The batches of a split, as functions of the step."""

  batch_at: Callable[[int], Batch]
  row_ids: Callable[[int], np.ndarray]  # step -> [B], -1 for fillers.
  # step -> (rows, length) that the encoder reads.
  shape_at: Callable[[int], tuple[int, int]]
  num_steps: int  # Per epoch.


def make_buckets(length: int) -> tuple[int, ...]:
  """Returns the lengths that rows are padded to, in increasing order."""
  return tuple(sorted(b for b in {*_quarters(length), length} if b <= length))


def _quarters(length: int) -> set[int]:
  """Returns quarters of length, rounded up to multiples of 8.

  If they are above 128, quarters of the first are among them, and so on.
  """
  lengths = {max(-(-length * i // 32) * 8, 8) for i in (1, 2, 3)}
  shortest = min(lengths)
  return lengths | _quarters(shortest) if shortest > 128 else lengths


class PlannedBatch(NamedTuple):
  """A batch of inference."""

  which: np.ndarray  # [B], indices of rows; -1 is a filler.
  length: int  # L, of the rows that the heads read.
  layout: PackingLayout  # Of those that the encoder reads.


def plan_batches(
  lengths: np.ndarray, buckets: Sequence[int], *, batch_size: int
) -> Iterator[PlannedBatch]:
  """Yields batches that hold each row once, those of the longest rows first.

  A batch has rows of the same bucket (bin_packing.shared_buckets). It is an
  even sample of their lengths, so that all batches fill about as many encoder
  rows, and few shapes are compiled.

  Args:
    lengths: [R, C], from Rows.sequence_lengths.
    buckets: from make_buckets; the last holds every row.
    batch_size: B; less for L > 512: as many positions as batch_size rows of
      512.
  """
  bounds = np.array(buckets)
  for L, group in bin_packing.shared_buckets(lengths.max(axis=1), bounds):
    sizes = lengths[group].sum(axis=1)
    if sizes.sum() <= L:  # A single encoder row, which may be shorter.
      L = int(bounds[np.searchsorted(bounds, sizes.sum())])
    group = group[np.argsort(sizes, kind="stable")][_spread(len(group))]
    B = max(batch_size * 512 // max(L, 512), 1)
    plan = _in_batches(group, B)
    if len(plan) == 1:  # It may be of any size.
      layout = PackingLayout(L, _powers_up_to(B * lengths.shape[1]))
    else:
      layout = packing.known_layout(
        [np.where(which[:, None] < 0, 1, lengths[which]) for which in plan],
        np.arange(B)[None],
        L,
      )
    for which in plan:
      yield PlannedBatch(which, L, layout)


def _spread(count: int) -> np.ndarray:
  """Returns 0..count-1 in an order in which neighbours are far apart.

  Any few in a row are spread evenly over all, as multiples of the golden ratio
  are, modulo 1 (Knuth, The Art of Computer Programming 3, section 6.4).
  """
  return np.argsort(np.arange(count) * (5**0.5 - 1) / 2 % 1)


def _powers_up_to(largest: int) -> tuple[int, ...]:
  """Returns 1, 2, 4, ... below `largest`, and `largest`."""
  return (*(1 << i for i in range((largest - 1).bit_length())), largest)


def gather_batch(rows: Rows, batch: PlannedBatch, pad: int) -> Batch:
  """Returns the arrays of a planned batch; `pad` fills input_ids."""
  return {
    **gather_rows(rows, batch.which, batch.length, pad),
    **packing.pack_batch(
      rows,
      batch.which,
      np.arange(len(batch.which))[None],
      batch.layout,
      own=np.array([0]),
      length=batch.length,
      pad=pad,
    ),
  }


def train_batches(
  rows: Rows, *, batch_size: int, seed: int, **shape: Any
) -> RowBatches:
  """Returns batches of a training set, in a different order in every epoch.

  Args:
    rows: the training rows.
    batch_size: B, over all hosts.
    **shape: as in _packed_batches.
  """
  num_steps = -(-len(rows.lengths) // batch_size)

  @functools.lru_cache(maxsize=2)  # Prefetching may cross into the next epoch.
  def plan(epoch: int) -> np.ndarray:
    return _shuffled(rows, batch_size, seed=seed, epoch=epoch)

  def row_ids(step: int) -> np.ndarray:
    epoch, at = divmod(step, num_steps)
    return plan(epoch)[at]

  return _packed_batches(rows, row_ids, num_steps, **shape)


def heldout_batches(
  rows: Rows, *, batch_size: int, row_length: int, microbatches, **shape: Any
) -> RowBatches:
  """Returns batches that contain every row once, all of one shape.

  Args:
    rows, batch_size: as in train_batches.
    row_length: S, of the rows that the encoder reads.
    microbatches, **shape: as in _packed_batches.
  """
  lengths = rows.sequence_lengths(np.arange(len(rows.lengths)))
  order = np.argsort(lengths.sum(axis=1), kind="stable")
  plan = _in_batches(order[_spread(len(order))], batch_size)
  layout = packing.known_layout(
    [rows.sequence_lengths(which) for which in plan], microbatches, row_length
  )
  return _packed_batches(
    rows,
    lambda step: plan[step],
    len(plan),
    layout=layout,
    microbatches=microbatches,
    **shape,
  )


def _packed_batches(
  rows: Rows,
  row_ids: Callable[[int], np.ndarray],
  num_steps: int,
  *,
  length: int,
  layout: PackingLayout,
  microbatches: np.ndarray,
  pad: int,
  shard: tuple[int, int],
) -> RowBatches:
  """Returns the batches of the rows that `row_ids` chooses for each step.

  They are packed by `layout` (packing.py) from rows of at most `length` tokens.
  `batch_at` returns a part of each batch, the `shard` (index, count), whose
  index may be an array of several (sharding.data_shard).
  """
  own = host_slice(np.arange(len(microbatches)), shard)  # This host's.

  def batch_at(step: int) -> Batch:
    which = row_ids(step)
    return {
      **gather_rows(rows, host_slice(which, shard), length, pad),
      **packing.pack_batch(
        rows, which, microbatches, layout, own=own, length=length, pad=pad
      ),
    }

  def shape_at(step: int) -> tuple[int, int]:
    lengths = rows.sequence_lengths(row_ids(step))
    r = packing.rows_needed(lengths, microbatches, layout)
    return len(microbatches) * r, layout.length

  return RowBatches(batch_at, row_ids, shape_at, num_steps)


def with_ramp(batches: RowBatches, steps: float) -> RowBatches:
  """Returns batches with `ramp` [B], from 0 to 1 in so many steps, if any."""
  if not steps:
    return batches

  def batch_at(step: int) -> Batch:
    batch = batches.batch_at(step)
    ramp = np.full_like(batch["example_weights"], min(step / steps, 1))
    return {**batch, "ramp": ramp}

  return batches._replace(batch_at=batch_at)


def fit_layout(
  rows: Rows,
  *,
  batch_size: int,
  microbatches: np.ndarray,
  length: int,
  width: int,
  costs: packing.RowCosts,
  num_steps: int,
) -> PackingLayout:
  """Returns the cheapest packing layout for the batches of these rows.

  The arguments are those of train_batches and packing.cheapest_layout. Runs
  that differ only in their seed get the same layout, and so share compilations.
  """
  sample = []
  for epoch in range(3):
    for which in _shuffled(rows, batch_size, seed=0, epoch=epoch)[:_SAMPLE]:
      lengths = rows.sequence_lengths(which)
      sample += list(lengths[microbatches].reshape(len(microbatches), -1))
  return packing.cheapest_layout(
    sample, length=length, width=width, costs=costs, num_steps=num_steps
  )


def _shuffled(rows: Rows, batch_size: int, *, seed: int, epoch: int):
  size = len(rows.lengths)
  order = shuffle(np.arange(size), size, seed=seed, epoch=epoch)
  if rows.texts:
    order = _separate_texts(order, rows.texts, batch_size)
  return _in_batches(order, batch_size)


def _separate_texts(order, texts: Sequence[frozenset[str]], batch_size: int):
  """Returns `order` with fillers, -1, such that no batch has a text twice.

  A row goes to the first batch that has room and none of its texts; if there is
  none, because a text is in more rows than there are batches, to the first that
  has room.
  """
  steps: list[list[int]] = [[] for _ in range(-(-len(order) // batch_size))]
  known: list[set[str]] = [set() for _ in steps]
  first, leftover = 0, []  # The first batch that has room.
  for row in order:
    while first < len(steps) and len(steps[first]) == batch_size:
      first += 1
    with_room = (
      i for i in range(first, len(steps)) if len(steps[i]) < batch_size
    )
    at = next((i for i in with_room if known[i].isdisjoint(texts[row])), None)
    if at is None:
      leftover.append(row)
    else:
      steps[at].append(row)
      known[at] |= texts[row]
  for row in leftover:
    next(rows for rows in steps if len(rows) < batch_size).append(row)
  return [x for rows in steps for x in rows + [-1] * (batch_size - len(rows))]


def _in_batches(order: np.ndarray, batch_size: int) -> np.ndarray:
  """Returns the row ids of each step, int64 [steps, B]; -1 is a filler."""
  steps = np.full(-(-len(order) // batch_size) * batch_size, -1, np.int64)
  steps[: len(order)] = order
  return steps.reshape(-1, batch_size)


def estimate_padding_share(rows: Rows, batches: RowBatches) -> float:
  """Returns the share of positions that are padding, from the first steps."""
  steps = range(min(batches.num_steps, _SAMPLE))
  positions = sum(math.prod(batches.shape_at(step)) for step in steps)
  real = 0
  for step in steps:
    which = batches.row_ids(step)
    real += int(rows.sequence_lengths(which[which >= 0]).sum())
  return 1 - real / positions


def gather_rows(rows: Rows, which: np.ndarray, length: int, pad: int) -> Batch:
  """Returns the batch of these rows ([b], -1 for fillers), padded to length.

  A filler row is a single [PAD] of weight 0, which attends to itself, so that
  no softmax is over an empty set.
  """
  is_real = which >= 0
  batch = {}
  for name, arrays in rows.tokens.items():
    lead = arrays[0].shape[:-1]
    fill = pad if name == "input_ids" else 0
    out = np.full((len(which), *lead, length), fill, np.int32)
    for i, row in enumerate(which):
      if row >= 0:
        out[i, ..., : arrays[row].shape[-1]] = arrays[row]
    batch[name] = out
  is_token = np.arange(length) < rows.sequence_lengths(which)[..., None]
  for name, values in rows.values.items():
    batch[name] = np.array(values[which])
    batch[name][~is_real] = 0
  return {
    **batch,
    "segment_ids": is_token.reshape(batch["input_ids"].shape).astype(np.int32),
    "example_weights": is_real.astype(np.float32),
  }
