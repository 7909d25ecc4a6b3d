"""Rows of different lengths -> batches: a pure function of (rows, seed, step).

Rows of about the same length go together, so that few positions are padding:
within windows of random rows, sorted by length and cut into batches, whose
order is random again. Every row comes once in an epoch; the last batch of an
epoch may end in filler rows of weight 0. A batch is as long as the smallest
bucket that holds it: as many compilations as buckets, and no more.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.config import ConfigError
from maskedlm.corpus import hashing
from maskedlm.finetune.application import Rows
from maskedlm.task import Batch

WINDOW = 16  # Batches whose rows are sorted by length together.
NUM_BUCKETS = 6  # At most, where they are fitted: a compilation each.


class Plan(NamedTuple):
  """Which rows a step has, and how long they are padded."""

  rows: np.ndarray  # [steps, B]: row of each place; -1 = filler.
  lengths: np.ndarray  # [steps]: L of each batch.


class Batches(NamedTuple):
  """The fields that a Task needs, and what is said of them."""

  batch_at: Callable[[int], Batch]
  row_ids: Callable[[int], np.ndarray]
  length_at: Callable[[int], int]
  num_steps: int  # In an epoch.


def make_buckets(length: int, buckets: Sequence[int]) -> tuple[int, ...]:
  """The lengths that rows are padded to, in increasing order.

  Raises:
    ConfigError: a bucket that is not within 8..length.
  """
  if not buckets:  # Quarters, of whole eights.
    buckets = {max(-(-length * i // 32) * 8, 8) for i in (1, 2, 3)}
    buckets = [b for b in buckets if b < length]
  for bucket in buckets:
    if not 8 <= bucket <= length:
      raise ConfigError(
        f"data.buckets has {bucket}: expected 8 to data.length={length}."
      )
  return tuple(sorted({*buckets, length}))


def fit_buckets(
  lengths: np.ndarray, batch_size: int, length: int
) -> tuple[int, ...]:
  """The NUM_BUCKETS lengths with the least padding for rows of these lengths.

  Multiples of 8 and `length`, which is the last one whatever the rows are. By
  dynamic programming over what the batches of an epoch need; of no seed, so
  that runs that differ by it share their compilations.

  Args:
    lengths: [n] of the rows, `length` at most.
    batch_size: B.
    length: config.data.length.
  """
  ends = np.unique(np.minimum(np.arange(8, length + 8, 8), length))
  needed = _plan_epoch(lengths, batch_size, ends, seed=0, epoch=0).lengths
  counts = np.bincount(np.searchsorted(ends, needed), minlength=len(ends))
  below = np.cumsum([0, *counts])  # [i]: batches that fit an end before i.
  # best[j]: (positions of what fits ends[j], the buckets), j the last bucket.
  best = [
    (end * n, (int(end),)) for end, n in zip(ends, below[1:], strict=True)
  ]
  for _ in range(NUM_BUCKETS - 1):
    best = [
      min(
        [best[j]]
        + [
          (cost + end * (below[j + 1] - below[i + 1]), (*chosen, int(end)))
          for i, (cost, chosen) in enumerate(best[:j])
        ]
      )
      for j, end in enumerate(ends)
    ]
  return best[-1][1]


def train_batches(
  rows: Rows,
  *,
  batch_size: int,
  buckets: Sequence[int],
  pad: int,
  seed: int,
  shard: tuple[int, int],
) -> Batches:
  """Batches of a training set, in another order in every epoch.

  Args:
    rows: what to batch.
    batch_size: B, over all hosts.
    buckets: from make_buckets; the last one holds every row.
    pad: the id that fills input_ids.
    seed: of the order.
    shard: (index, count) of the equal part of each batch that is returned;
      index may be several (sharding.data_shard).
  """
  lengths = rows.lengths
  num_steps = -(-len(lengths) // batch_size)

  @functools.lru_cache(maxsize=2)  # Two, for what is prefetched.
  def plan(epoch: int) -> Plan:
    return _plan_epoch(lengths, batch_size, buckets, seed=seed, epoch=epoch)

  def at(step: int):
    epoch, index = divmod(step, num_steps)
    made = plan(epoch)
    return made.rows[index], int(made.lengths[index])

  return _batches(rows, at, num_steps, pad=pad, shard=shard)


def heldout_batches(
  rows: Rows,
  *,
  batch_size: int,
  buckets: Sequence[int],
  pad: int,
  shard: tuple[int, int],
) -> Batches:
  """Every row once, the shortest first; arguments as train_batches."""
  order = np.argsort(rows.lengths, kind="stable")
  plan = _cut(rows.lengths, order, batch_size, buckets)

  def at(step: int):
    return plan.rows[step], int(plan.lengths[step])

  return _batches(rows, at, len(plan.lengths), pad=pad, shard=shard)


def padding_share(
  lengths: np.ndarray, batches: Batches, batch_size: int
) -> float:
  """Share of padding among the positions of an epoch, filler rows included."""
  positions = sum(batches.length_at(i) for i in range(batches.num_steps))
  return 1 - float(np.sum(lengths)) / (positions * batch_size)


def _plan_epoch(lengths, batch_size, buckets, *, seed, epoch) -> Plan:
  index = np.arange(len(lengths))
  key = hashing.bits(seed, "order", epoch)
  order = hashing.permute(index, len(lengths), key)
  window = np.arange(len(order)) // (WINDOW * batch_size)
  order = order[np.lexsort((lengths[order], window))]
  plan = _cut(lengths, order, batch_size, buckets)
  steps = len(plan.lengths)
  key = hashing.bits(seed, "batches", epoch)
  shuffled = hashing.permute(np.arange(steps), steps, key)
  return Plan(plan.rows[shuffled], plan.lengths[shuffled])


def _cut(lengths, order, batch_size, buckets) -> Plan:
  """The rows in order, a batch after the other."""
  steps = -(-len(order) // batch_size)
  rows = np.full(steps * batch_size, -1, np.int64)
  rows[: len(order)] = order
  rows = rows.reshape(steps, batch_size)
  longest = np.where(rows >= 0, lengths[rows], 0).max(axis=1)
  return Plan(rows, np.array(buckets)[np.searchsorted(buckets, longest)])


def _batches(rows: Rows, at, num_steps, *, pad, shard) -> Batches:
  index, count = shard

  def batch_at(step: int) -> Batch:
    which, length = at(step)
    which = which.reshape(count, -1)[np.atleast_1d(index)].ravel()
    return gather(rows, which, length, pad)

  return Batches(
    batch_at=batch_at,
    row_ids=lambda step: at(step)[0],
    length_at=lambda step: at(step)[1],
    num_steps=num_steps,
  )


def gather(rows: Rows, which: np.ndarray, length: int, pad: int) -> Batch:
  """The batch of these rows ([b], -1 = filler), padded to length.

  A filler row is a single [PAD] of weight 0: it sees itself, so that no
  softmax is over nothing.
  """
  real = which >= 0
  batch = {}
  for name, arrays in rows.tokens.items():
    lead = arrays[0].shape[:-1]
    fill = pad if name == "input_ids" else 0
    out = np.full((len(which), *lead, length), fill, np.int32)
    for i, row in enumerate(which):
      if row >= 0:
        out[i, ..., : arrays[row].shape[-1]] = arrays[row]
    batch[name] = out
  segment_ids = np.zeros(batch["input_ids"].shape, np.int32)
  for i, row in enumerate(which):
    end = rows.tokens["input_ids"][row].shape[-1] if row >= 0 else 1
    segment_ids[i, ..., :end] = 1
  for name, values in rows.values.items():
    taken = np.array(values[which])
    taken[~real] = 0
    batch[name] = taken
  return {
    **batch,
    "segment_ids": segment_ids,
    "example_weights": real.astype(np.float32),
  }
