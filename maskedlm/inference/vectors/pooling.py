"""A unit's vector out of its tokens', which may lie in several rows.

A row gives a part of each of its units: a sum or a maximum, and of how many
tokens. Parts of one unit follow each other, and are joined as they come.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.inference.vectors.rows import Row

# How two parts of a unit become one.
REDUCE = {"mean": np.add, "max": np.maximum, "cls": np.add}


class Parts(NamedTuple):
  """Of p units, in growing order; C is the shape of a vector."""

  units: np.ndarray  # [p] int64.
  values: np.ndarray  # [p, C] float32: sums, or maxima.
  counts: np.ndarray  # [p] float32: how many tokens they are of.


def of_row(x: np.ndarray, row: Row, pool: str, *, cls_place: int) -> Parts:
  """The parts that a row has.

  Args:
    x: [l, C], the vectors of its positions.
    row: says which unit each position counts to.
    pool: a name of REDUCE. cls: the vector at cls_place, weighed by the tokens
      that the row stands for, as a long sentence has several.
    cls_place: 0, or in an encoder that reads left to right the last one.
  """
  counted = row.units >= 0
  units = row.units[counted]
  if pool == "cls":
    count = np.float32([len(units)])
    return Parts(units[:1], x[cls_place][None] * len(units), count)
  ones = np.ones(len(units), np.float32)
  return _join(Parts(units, x[counted], ones), pool)


def join(parts: Sequence[Parts], pool: str) -> Parts:
  """Parts that follow each other as one: neighbours of a unit are joined."""
  return _join(Parts(*map(np.concatenate, zip(*parts, strict=True))), pool)


def _join(parts: Parts, pool: str) -> Parts:
  units, values, counts = parts
  begins = np.flatnonzero(np.diff(units, prepend=-1))
  if len(begins) == len(units):
    return parts
  return Parts(
    units=units[begins],
    values=REDUCE[pool].reduceat(values, begins),
    counts=np.add.reduceat(counts, begins),
  )


def finish(parts: Parts, pool: str) -> np.ndarray:
  """The vectors [p, C] of whole units."""
  if pool == "max":
    return parts.values
  counts = parts.counts.reshape(-1, *[1] * (parts.values.ndim - 1))
  return parts.values / counts
