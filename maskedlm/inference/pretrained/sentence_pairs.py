"""Makes pairs of texts for next-sentence prediction from documents.

A pair is two neighbouring pieces of a document, of whole sentences where they
fit. For half of the pairs, the second is another document's (label 1), or, for
ALBERT's question, the two are swapped.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Pair(NamedTuple):
  """Two texts."""

  first: np.ndarray  # [a] int32, without special tokens.
  second: np.ndarray  # [b] int32.
  label: int  # 0: the second follows the first.


def make_pairs(
  documents: Sequence[tuple[np.ndarray, np.ndarray]],
  *,
  length: int,
  swap: bool,
  rng: np.random.Generator,
) -> list[Pair]:
  """Returns the pairs of documents.

  Args:
    documents: (ids [n], number of tokens of each sentence) of each document;
      those of one sentence have no pair.
    length: the most tokens of a row [CLS] first [SEP] second [SEP].
    swap: whether label 1 means that the two are swapped.
    rng: decides the labels and the other documents.
  """
  neighbours = [
    (number, *pair)
    for number, document in enumerate(documents)
    for pair in _neighbours(*document, (length - 3) // 2)
  ]
  pairs = []
  for number, first, second in neighbours:
    if rng.random() < 0.5:
      pairs.append(Pair(first, second, 0))
      continue
    if swap:
      pairs.append(Pair(second, first, 1))
      continue
    others = [other for other in neighbours if other[0] != number]
    if others:
      second, label = others[rng.integers(len(others))][2], 1
    else:  # A single document.
      label = 0
    pairs.append(Pair(first, second, label))
  return pairs


def _neighbours(ids: np.ndarray, counts: np.ndarray, size: int):
  """Yields (first, second), pieces of `size` tokens at most of a document."""
  ends = np.cumsum(counts[counts > 0])
  if len(ends) < 2:
    return
  begin = 0
  while begin < ends[-2]:
    rest = ends[ends > begin]
    # Of the sentences that fit twice the size, half go into each piece.
    fitting = rest[: max(int(np.sum(rest - begin <= 2 * size)), 2)]
    if len(fitting) < 2:
      return
    middle, end = fitting[(len(fitting) - 1) // 2], fitting[-1]
    yield ids[begin:middle][:size], ids[middle:end][:size]
    begin = end
