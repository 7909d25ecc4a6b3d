"""Cuts texts into rows, with the unit of each position."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from maskedlm.data.batches.text_pairs import text_row
from maskedlm.data.labelled.text_lines import Text
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.inference.rows import token_windows
from maskedlm.inference.vectors.units import (
  NO_UNIT,
  UNITS,
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
    unit: a key of UNITS.
    length: the largest number of positions in a row.
  """
  tokenise, find_units = make_tokeniser(tokenizer), UNITS[unit]

  def cut(text: Text) -> CutText:
    tokens = tokenise(text)
    units = find_units(text, tokens)
    count, rows = len(tokens.ids), []
    if not len(units.offsets):
      return CutText(units, [], 2)
    for window in token_windows(count, length - 2, lambda: tokens.words()[0]):
      ids = text_row(tokenizer, tokens.ids[window.begin : window.end])
      of_row = np.full(len(ids), NO_UNIT, np.int64)
      kept_units = units.of_tokens[window.keep_begin : window.keep_end]
      begin = window.keep_begin - window.begin + 1
      of_row[begin : begin + len(kept_units)] = kept_units
      rows.append(Row(ids, of_row))
    if unit == "sentence":
      rows[0].units[0] = rows[-1].units[-1] = 0
    return CutText(units, rows, count + 2)

  return cut


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
