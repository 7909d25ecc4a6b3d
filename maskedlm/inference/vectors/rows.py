"""Cuts texts into rows: windows of tokens, with the unit of each position.

A text longer than a row is read in overlapping windows, and each token's vector
is taken from the window that has most of its context
(data/labelled/windows.py). Words are not split across windows if they fit.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.data.batches.bin_packing import SHARED_LENGTH, first_fit
from maskedlm.data.labelled import windows
from maskedlm.data.labelled.text_lines import Text
from maskedlm.data.tokenizers.tokenizer import Special, Tokenizer
from maskedlm.inference.vectors.units import (
  NO_UNIT,
  UNITS,
  TextTokens,
  TextUnits,
  make_tokeniser,
)


class Row(NamedTuple):
  """A row [CLS] tokens [SEP] of l positions."""

  ids: np.ndarray  # [l] int32.
  units: np.ndarray  # [l] int64: the unit of each position, or NO_UNIT.


class CutText(NamedTuple):
  """The units and rows of a text."""

  units: TextUnits
  rows: list[Row]
  size: int  # Tokens of the whole text, including [CLS] and [SEP].


def make_row_cutter(
  tokenizer: Tokenizer, unit: str, *, length: int
) -> Callable[[Text], CutText]:
  """Returns a function from a text to its rows.

  A sentence's unit includes [CLS] of its first row and [SEP] of its last one,
  so that the mean equals that of sentence-transformers.

  Args:
    tokenizer: the encoder's.
    unit: a key of UNITS.
    length: the largest number of positions in a row.
  """
  tokenise, find_units = make_tokeniser(tokenizer), UNITS[unit]
  special, capacity = tokenizer.special, length - 2

  def cut(text: Text) -> CutText:
    tokens = tokenise(text)
    units = find_units(text, tokens)
    if not len(units.offsets):
      return CutText(units, [], 2)
    rows = [
      _row(tokens.ids, units.of_tokens, window, special)
      for window in _windows(tokens, capacity)
    ]
    if unit == "sentence":
      rows[0].units[0] = rows[-1].units[-1] = 0
    return CutText(units, rows, len(tokens.ids) + 2)

  return cut


def _windows(tokens: TextTokens, capacity: int) -> list[windows.Window]:
  count = len(tokens.ids)
  if count <= capacity:
    return [windows.Window(0, count, 0, count)]
  sizes = _pieces(tokens.words()[0], capacity)
  starts = np.concatenate([[0], np.cumsum(sizes)])
  return [
    windows.Window(*(int(starts[item]) for item in window))
    for window in windows.cut_windows(sizes, capacity)
  ]


def _pieces(words: np.ndarray, capacity: int) -> list[int]:
  """Returns the number of tokens of each word, split if above capacity."""
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
  units = np.full(len(inside) + 2, NO_UNIT, np.int64)
  begin = window.keep_begin - window.begin + 1
  kept = of_tokens[window.keep_begin : window.keep_end]
  units[begin : begin + len(kept)] = kept
  ids = np.concatenate([[special.cls], inside, [special.sep]])
  return Row(ids.astype(np.int32), units)


class Waiting(NamedTuple):
  """The fields of Vectors for units whose values are not computed yet."""

  texts: np.ndarray
  offsets: np.ndarray
  ids: np.ndarray
  sources: tuple[Text, ...]


def number_units(
  texts: Iterable[Text | str],
  cut: Callable[[Text], CutText],
  long: list[int] | None,
) -> Iterator[tuple[Row, Waiting | None]]:
  """Yields rows with units numbered over all texts.

  The first row of a text comes with all units of the text. `long` is that of
  vectors.embed.
  """
  first = number = 0
  for text in texts:
    text = Text(text) if isinstance(text, str) else text
    units, rows, size = cut(text)
    count = len(units.offsets)
    if long is not None and len(rows) > 1:
      long.append(size)
    waiting = Waiting(
      np.full(count, number), units.offsets, units.ids, (text,) * count
    )
    for i, row in enumerate(rows):
      moved = np.where(row.units >= 0, row.units + first, row.units)
      yield row._replace(units=moved), None if i else waiting
    first, number = first + count, number + bool(rows)


def chunk_rows(numbered: Iterable[tuple], num_tokens: int) -> Iterator[list]:
  """Yields lists of rows with at least num_tokens positions in total."""
  chunk, held = [], 0
  for row, waiting in numbered:
    chunk.append((row, waiting))
    held += len(row.ids)
    if held >= num_tokens:
      yield chunk
      chunk, held = [], 0
  if chunk:
    yield chunk


def bucket_lengths(length: int) -> tuple[int, ...]:
  """Returns the lengths that rows are padded to.

  Above 64, each is an eighth to a quarter longer than the one before: 8, 16,
  24, ... 64, 80, 96, 112, 128, 160, ... up to length. Each is compiled when a
  batch first has it.
  """
  powers = range(length.bit_length())
  steps = {step << k for step in (8, 10, 12, 14) for k in powers}
  return (*sorted(s for s in steps if s < length and s % 8 == 0), length)


class PackedBatch(NamedTuple):
  """Where the rows of a batch stand, side by side in longer ones."""

  which: np.ndarray  # [n], indices of rows.
  starts: np.ndarray  # [n], the place of each in the flattened batch.
  shape: tuple[int, int]  # (B, L).


def plan_packed_batches(
  lengths: Sequence[int], buckets: Sequence[int], *, batch_tokens: int
) -> Iterator[PackedBatch]:
  """Yields batches of rows packed into longer ones, the longest first.

  These are SHARED_LENGTH long, or of the bucket of a row that is longer: almost
  no position is padding, and only a few shapes are compiled. A batch has about
  batch_tokens positions; the last one of a length may have fewer rows, a power
  of 2. If one row holds everything, its length is the smallest bucket.
  """
  lengths, buckets = np.asarray(lengths), np.asarray(buckets)
  shared = np.maximum(lengths, min(SHARED_LENGTH, buckets[-1]))
  needed = buckets[np.searchsorted(buckets, shared)]
  for L in map(int, np.unique(needed)[::-1]):
    (which,) = np.nonzero(needed == L)
    row, start, count = first_fit(lengths[which], L)
    if count == 1:
      L = int(buckets[np.searchsorted(buckets, lengths[which].sum())])
    size = max(batch_tokens // L, 1)
    for first in range(0, count, size):
      taken = (first <= row) & (row < first + size)
      places = (row[taken] - first) * L + start[taken]
      B = min(size, 1 << (count - first - 1).bit_length())
      yield PackedBatch(which[taken], places, (B, L))


def plan_batches(
  lengths: Sequence[int], buckets: Sequence[int], *, batch_tokens: int
) -> Iterator[tuple[np.ndarray, int]]:
  """Yields (row indices [B], where -1 is a filler, and L) for each batch.

  The longest rows come first. A batch is padded to the bucket of its longest
  row and has about batch_tokens positions; the last batch may have fewer rows,
  a power of 2.
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
