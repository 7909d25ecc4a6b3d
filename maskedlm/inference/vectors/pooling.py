"""Pools the vectors of a unit's tokens, which may lie in several rows.

A row yields a partial sum (or maximum) for each of its units, with the number
of tokens. Consecutive partial sums of the same unit are merged in order.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from maskedlm.inference.vectors import splade
from maskedlm.inference.vectors.rows import Waiting
from maskedlm.modeling.architecture import EncoderConfig

# Pool -> the function that merges partial results of a unit.
REDUCTIONS = {
  "mean": np.add,
  "max": np.maximum,
  "cls": np.add,
  splade.POOL: np.maximum,
}


class PartialSums(NamedTuple):
  """Partial sums of p units, in ascending order; C is the shape of a vector."""

  units: np.ndarray  # [p] int64: the index of each unit.
  values: np.ndarray  # [p, C] float32: sums or maxima.
  counts: np.ndarray  # [p] float32: the number of tokens in each.


def cls_vector(cfg: EncoderConfig, x: np.ndarray) -> np.ndarray:
  """Returns the vector [C] of a row x [l, C], as heads.sentence_vector does."""
  if cfg.reads == "apart":
    is_left = np.arange(x.shape[-1]) % cfg.width < cfg.width // 2
    return np.where(is_left, x[-1], x[0])
  return x[-1] if cfg.reads == "left" else x[0]


def pool_row(
  x: np.ndarray, units: np.ndarray, pool: str, *, cls: np.ndarray
) -> PartialSums:
  """Returns the partial sums of a row's vectors x [l, C], of units [l].

  A unit below 0 is none. The pool "cls" takes the vector cls [C] of the whole
  row, weighted by its tokens, as a long sentence has several rows.
  """
  counted = units >= 0
  units = units[counted]
  if pool == "cls":
    count = np.array([len(units)], np.float32)
    return PartialSums(units[:1], cls[None] * len(units), count)
  ones = np.ones(len(units), np.float32)
  return _join(PartialSums(units, x[counted], ones), pool)


def _join(parts: PartialSums, pool: str) -> PartialSums:
  """Returns partial sums, with those of the same unit merged."""
  units, values, counts = parts
  begins = np.flatnonzero(np.diff(units, prepend=-1))
  if len(begins) == len(units):
    return parts
  return PartialSums(
    units=units[begins],
    values=REDUCTIONS[pool].reduceat(values, begins),
    counts=np.add.reduceat(counts, begins),
  )


def to_vectors(parts: PartialSums, pool: str) -> np.ndarray:
  """Returns the vectors [p, C] of complete units."""
  if REDUCTIONS[pool] is np.maximum:
    return parts.values
  counts = parts.counts.reshape(-1, *[1] * (parts.values.ndim - 1))
  return parts.values / counts


def pool_chunks(
  chunks: Iterable[list], encode: Callable, pool: str, cfg: EncoderConfig
) -> Iterator[tuple[np.ndarray, Waiting]]:
  """Yields the vectors [p, C] of complete units, with their other fields.

  Args:
    chunks: lists of the pairs that rows.number_units yields.
    encode: makes pairs (index, [l, C]) of a list of ids [l], in any order.
    pool: a key of REDUCTIONS.
  """
  waiting: list[Waiting] = []
  last: list[PartialSums] = []  # The last unit, perhaps incomplete.
  for chunk in chunks:
    waiting += [new for _, new in chunk if new is not None]
    parts: list = [None] * len(chunk)
    for i, x in encode([row.ids for row, _ in chunk]):
      cls = cls_vector(cfg, x)
      parts[i] = pool_row(x, chunk[i][0].units, pool, cls=cls)
    joined = map(np.concatenate, zip(*last, *parts, strict=True))
    sums = _join(PartialSums(*joined), pool)
    last = [PartialSums(*(field[-1:] for field in sums))]
    complete = PartialSums(*(field[:-1] for field in sums))
    if len(complete.units):
      done, rest = _split(waiting, len(complete.units))
      waiting = [rest]
      yield to_vectors(complete, pool), done
  if waiting:
    done, _ = _split(waiting, 1)
    yield to_vectors(last[0], pool), done


def _split(waiting: list[Waiting], count: int) -> tuple[Waiting, Waiting]:
  """Returns (the first `count` units, the others)."""
  fields = join_fields(waiting)
  return (
    Waiting(*(field[:count] for field in fields)),
    Waiting(*(field[count:] for field in fields)),
  )


def join_fields(parts: Sequence[tuple]) -> list:
  """Returns the concatenated fields of tuples of arrays and, last, a tuple."""
  *arrays, sources = zip(*parts, strict=True)
  joined = [
    sparse.vstack(x, "csr") if sparse.issparse(x[0]) else np.concatenate(x)
    for x in arrays
  ]
  return [*joined, tuple(itertools.chain(*sources))]
