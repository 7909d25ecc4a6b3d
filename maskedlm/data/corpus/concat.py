"""Several memory-mapped arrays read as one: the columns of a split.

Below `store`, which opens the shards' files; nothing is copied but what is
taken.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Concat(NamedTuple):
  """Memory-mapped arrays read as one, element i of part p as value + base."""

  arrays: tuple[np.ndarray, ...]
  starts: np.ndarray  # [parts + 1] int64: index of each part's first element.
  bases: np.ndarray  # [parts]: what is added to the values of each part.


def concatenate(parts: Sequence[np.ndarray], bases: np.ndarray) -> Concat:
  """The Concat of these arrays."""
  starts = np.cumsum([0, *map(len, parts)], dtype=np.int64)
  return Concat(tuple(parts), starts, bases)


def size(concat: Concat) -> int:
  """How many elements the parts hold together."""
  return int(concat.starts[-1])


def take(concat: Concat, indices) -> np.ndarray:
  """The elements at `indices`, any shape: int64 starts, or native token ids.

  Raises IndexError where an index is negative or past the end.
  """
  indices = np.asarray(indices)
  dtype = np.result_type(concat.arrays[0], concat.bases)
  if indices.size == 0:
    return np.empty(indices.shape, dtype)
  low, high = indices.min(), indices.max()
  if low < 0 or high >= size(concat):
    raise IndexError(f"{low}..{high} is not within 0..{size(concat) - 1}")
  first, last = np.searchsorted(concat.starts, [low, high], side="right") - 1
  if first == last:  # Nearly always: one gather.
    values = concat.arrays[first][indices - concat.starts[first]]
    return values + concat.bases[first]
  flat = indices.reshape(-1)
  part = np.searchsorted(concat.starts, flat, side="right") - 1
  order = np.argsort(part, kind="stable")
  bounds = np.searchsorted(part[order], np.arange(first, last + 2))
  values = np.empty(flat.size, dtype)
  for p, (begin, end) in enumerate(itertools.pairwise(bounds), start=first):
    here = order[begin:end]
    local = concat.arrays[p][flat[here] - concat.starts[p]]
    values[here] = local + concat.bases[p]
  return values.reshape(indices.shape)


def view(concat: Concat, begin: int, end: int, *, origin: int = 0) -> Concat:
  """Elements begin to end, as values - origin; views, nothing is read.

  Where that is nothing, one empty array, so that it has its dtype.
  """
  found = [
    (part[max(begin - start, 0) : end - start], base)
    for part, start, base in zip(
      concat.arrays, concat.starts, concat.bases, strict=False
    )
    if start < end and start + len(part) > begin
  ]
  found = found or [(concat.arrays[0][:0], concat.bases[0])]
  parts, bases = zip(*found, strict=True)
  bases = np.array(bases, concat.bases.dtype)
  return concatenate(parts, bases - bases.dtype.type(origin))
