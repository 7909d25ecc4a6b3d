"""Texts -> rows: windows of tokens, each with the units it has vectors for.

A text that is longer than the encoder is read in overlapping windows, and each
of its tokens counts in the one that shows most of its context
(data/labelled/windows.py). Words stay whole where they fit.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.data.labelled import windows
from maskedlm.data.labelled.text_lines import Text
from maskedlm.data.tokenizers.tokenizer import Special, Tokenizer
from maskedlm.inference.vectors.units import (
  NONE,
  UNITS,
  Tokens,
  Units,
  tokeniser,
)


class Row(NamedTuple):
  """[CLS] tokens [SEP], l positions."""

  ids: np.ndarray  # [l] int32.
  units: np.ndarray  # [l] int64: the unit a position counts to, or NONE.


class Cut(NamedTuple):
  """A text, ready to be encoded."""

  units: Units
  rows: list[Row]


def cutter(
  tokenizer: Tokenizer, unit: str, *, length: int
) -> Callable[[Text], Cut]:
  """The function from a text to its rows.

  Of sentences, [CLS] of the first and [SEP] of the last row count as well, so
  that their mean is the one of sentence-transformers.

  Args:
    tokenizer: the encoder's.
    unit: a name of UNITS.
    length: the most positions of a row.
  """
  tokenise, find_units = tokeniser(tokenizer), UNITS[unit]
  special, capacity = tokenizer.special, length - 2

  def cut(text: Text) -> Cut:
    tokens = tokenise(text)
    units = find_units(text, tokens)
    if not len(units.offsets):
      return Cut(units, [])
    rows = [
      _row(tokens.ids, units.of_tokens, window, special)
      for window in _windows(tokens, capacity)
    ]
    if unit == "sentence":
      rows[0].units[0] = rows[-1].units[-1] = 0
    return Cut(units, rows)

  return cut


def _windows(tokens: Tokens, capacity: int) -> list[windows.Window]:
  count = len(tokens.ids)
  if count <= capacity:
    return [windows.Window(0, count, 0, count)]
  sizes = _pieces(tokens.words()[0], capacity)
  starts = np.concatenate([[0], np.cumsum(sizes)])
  return [
    windows.Window(*(int(starts[item]) for item in window))
    for window in windows.cut(sizes, capacity)
  ]


def _pieces(words: np.ndarray, capacity: int) -> list[int]:
  """Tokens of each word, or of each part of one that is no row's."""
  changes = np.flatnonzero(np.diff(words)) + 1
  sizes = np.diff(np.concatenate([[0], changes, [len(words)]]))
  return [
    min(int(size) - done, capacity)
    for size in sizes
    for done in range(0, int(size), capacity)
  ]


def _row(
  ids: np.ndarray,
  of_tokens: np.ndarray,
  window: windows.Window,
  special: Special,
) -> Row:
  inside = ids[window.begin : window.end]
  units = np.full(len(inside) + 2, NONE, np.int64)
  begin = window.keep_begin - window.begin + 1
  kept = of_tokens[window.keep_begin : window.keep_end]
  units[begin : begin + len(kept)] = kept
  ids = np.concatenate([[special.cls], inside, [special.sep]])
  return Row(ids.astype(np.int32), units)


def bucket_lengths(length: int) -> tuple[int, ...]:
  """What rows are padded to: steps of an eighth to a quarter, up to length.

  8, 16, 24, ... 64, 80, 96, 112, 128, 160, ...: each is compiled when a batch
  first has it.
  """
  powers = range(length.bit_length())
  steps = {step << k for step in (8, 10, 12, 14) for k in powers}
  return (*sorted(s for s in steps if s < length and s % 8 == 0), length)


def plan(
  lengths: Sequence[int], buckets: Sequence[int], *, batch_tokens: int
) -> Iterator[tuple[np.ndarray, int]]:
  """Which rows share a batch: (rows [B], -1 = filler; L) of each.

  The longest first. A batch is as long as the bucket of its longest row and
  has about batch_tokens positions; the last one is smaller, a power of 2.
  """
  lengths = np.asarray(lengths)
  order = np.argsort(-lengths, kind="stable")
  while len(order):
    L = buckets[np.searchsorted(buckets, lengths[order[0]])]
    left = 1 << (len(order) - 1).bit_length()
    which = np.full(min(max(batch_tokens // L, 1), left), -1, np.int64)
    taken, order = order[: len(which)], order[len(which) :]
    which[: len(taken)] = taken
    yield which, int(L)
