"""Reads several memory-mapped arrays as one: the columns of a split.

Only the elements that are taken are copied. The arrays may be streamed.Tokens,
which have a length and a dtype, and are sliced and indexed like vectors.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Concat(NamedTuple):
  """Arrays read as one: element i of array p is arrays[p][i] + bases[p]."""

  arrays: tuple[np.ndarray, ...]
  starts: np.ndarray  # [arrays + 1] int64: index of each one's first element.
  bases: np.ndarray  # [arrays]: added to the values of each array.


def concatenate(arrays: Sequence[np.ndarray], bases: np.ndarray) -> Concat:
  """Returns the Concat of these arrays."""
  starts = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
  return Concat(tuple(arrays), starts, bases)


def size(column: Concat) -> int:
  """Returns the number of elements."""
  return int(column.starts[-1])


def take(column: Concat, indices) -> np.ndarray:
  """Returns the elements at `indices` (starts are int64), in their shape.

  Raises:
    IndexError: an index is negative or past the end.
  """
  indices = np.asarray(indices)
  dtype = np.result_type(column.arrays[0].dtype, column.bases.dtype)
  if indices.size == 0:
    return np.empty(indices.shape, dtype)
  low, high = indices.min(), indices.max()
  if low < 0 or high >= size(column):
    raise IndexError(f"{low}..{high} is not within 0..{size(column) - 1}")
  first, last = np.searchsorted(column.starts, [low, high], side="right") - 1
  if first == last:  # Nearly always: one gather.
    values = column.arrays[first][indices - column.starts[first]]
    return values + column.bases[first]
  flat = indices.reshape(-1)
  part = np.searchsorted(column.starts, flat, side="right") - 1
  order = np.argsort(part, kind="stable")
  bounds = np.searchsorted(part[order], np.arange(first, last + 2))
  values = np.empty(flat.size, dtype)
  for p, (begin, end) in enumerate(itertools.pairwise(bounds), start=first):
    here = order[begin:end]
    local = column.arrays[p][flat[here] - column.starts[p]]
    values[here] = local + column.bases[p]
  return values.reshape(indices.shape)


def take_all(column: Concat) -> np.ndarray:
  """Returns all elements [size(column)], in memory."""
  return take(column, np.arange(size(column)))


def view(column: Concat, begin: int, end: int, *, origin: int = 0) -> Concat:
  """Returns elements begin to end - 1 as values - origin; reads nothing.

  An empty range is one empty array, which has the dtype.
  """
  ranges = [
    (array[max(begin - start, 0) : end - start], base)
    for array, start, base in zip(
      column.arrays, column.starts, column.bases, strict=False
    )
    if start < end and start + len(array) > begin
  ]
  ranges = ranges or [(column.arrays[0][:0], column.bases[0])]
  arrays, bases = zip(*ranges, strict=True)
  dtype = column.bases.dtype
  return concatenate(arrays, np.array(bases, dtype) - dtype.type(origin))
