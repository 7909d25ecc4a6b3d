"""Makes the rows in which the tokens of a text are predicted.

A masked model has a row for each token, in which it is masked: its scores sum
to the pseudo-log-likelihood (Salazar et al. 2020, arXiv:1910.14659). A causal
model has one row for all, whichever direction it reads, as have two language
models. A text longer than a row is read in windows, and each token is predicted
in one of them.
"""

import unicodedata
from collections.abc import Callable, Iterator

import numpy as np

from maskedlm.core.errors import check_name
from maskedlm.data.batches.text_pairs import text_row
from maskedlm.data.tokenizers.tokenizer import Encoding, Tokenizer
from maskedlm.inference.rows import Row, token_windows

# A row, and the places in the text of the tokens that it predicts.
PlacedRow = tuple[Row, slice]


def make_row_cutter(
  tokenizer: Tokenizer, *, length: int, reads: str, pll: str
) -> Callable[[str, Encoding], Iterator[PlacedRow]]:
  """Returns a function (text, its encoding) -> its rows, with their places.

  Args:
    length: the most tokens in a row.
    reads: EncoderConfig.reads of the model.
    pll: what is masked for a token of a masked model, a key of PLL.

  Raises:
    ConfigError: pll is unknown.
  """
  check_name("pll", pll, PLL)
  if reads in UNMASKED:
    rows = UNMASKED[reads]
    return lambda text, encoding: rows(tokenizer, encoding.ids, length)

  def cut(text: str, encoding: Encoding) -> Iterator[PlacedRow]:
    ends = PLL[pll](tokenizer, text, encoding)
    return _masked_rows(tokenizer, encoding.ids, ends, length)

  return cut


def _masked_rows(
  tokenizer: Tokenizer, ids: np.ndarray, ends: np.ndarray, length: int
) -> Iterator[PlacedRow]:
  """Yields a row for each token i, in which tokens i to ends[i] - 1 are masked.

  A long text's token is predicted in the window that has most of its context.
  """
  special = tokenizer.special
  for window in token_windows(len(ids), length - 2):
    row = text_row(tokenizer, ids[window.begin : window.end])
    for place in range(window.keep_begin, window.keep_end):
      position, end = (x - window.begin + 1 for x in (place, ends[place]))
      masked = row.copy()
      masked[position : min(end, len(row) - 1)] = special.mask
      here = slice(place, place + 1)
      yield Row(masked, np.array([position], np.int32), ids[here]), here


def _left_rows(
  tokenizer: Tokenizer, ids: np.ndarray, length: int
) -> Iterator[PlacedRow]:
  """Yields rows [CLS] tokens; each token is predicted from those before it.

  In training the last position of a row is [SEP], which predicts nothing. In a
  long text, a token has at least half a row to its left.
  """
  capacity = length - 1
  begin = done = 0
  while done < len(ids):
    end = min(begin + capacity, len(ids))
    row = Row(
      text_row(tokenizer, ids[begin : end - 1])[:-1],
      np.arange(done - begin, end - begin, dtype=np.int32),
      ids[done:end],
    )
    yield row, slice(done, end)
    begin, done = end - capacity // 2, end


def _right_rows(
  tokenizer: Tokenizer, ids: np.ndarray, length: int
) -> Iterator[PlacedRow]:
  """Yields rows [CLS] tokens [SEP]; each is predicted from those after it.

  [CLS] keeps the tokens at the positions of training, and is not read. In a
  long text, a token has at least half a row to its right.
  """
  capacity = length - 2
  # The end of the tokens that a row reads; the tokens not predicted yet.
  end = remaining = len(ids)
  while remaining:
    begin = max(end - capacity, 0)
    row = Row(
      text_row(tokenizer, ids[begin:end]),
      np.arange(2, remaining - begin + 2, dtype=np.int32),
      ids[begin:remaining],
    )
    yield row, slice(begin, remaining)
    end, remaining = begin + capacity // 2, begin


def _apart_rows(
  tokenizer: Tokenizer, ids: np.ndarray, length: int
) -> Iterator[PlacedRow]:
  """Yields rows [CLS] tokens [SEP]; each is predicted from either side."""
  for window in token_windows(len(ids), length - 2):
    here = slice(window.keep_begin, window.keep_end)
    row = text_row(tokenizer, ids[window.begin : window.end])
    places = np.arange(here.start, here.stop, dtype=np.int32)
    yield Row(row, places - window.begin + 1, ids[here]), here


# EncoderConfig.reads of a model that needs no masks -> the function that makes
# its rows.
UNMASKED = {"left": _left_rows, "right": _right_rows, "apart": _apart_rows}


def _one_token(tokenizer, text: str, encoding: Encoding) -> np.ndarray:
  """Returns the ends [n] of masks that hide a token and its last letter.

  A k-mer's last letter is also in the k-mers that overlap it from the right.
  """
  del text
  return np.arange(len(encoding.ids)) + tokenizer.overlap


def _rest_of_word(
  tokenizer: Tokenizer, text: str, encoding: Encoding
) -> np.ndarray:
  """Returns the ends [n] of masks that hide the rest of a token's word.

  Words are separated by spaces and by punctuation, as BERT separates them.
  """
  begins = np.array(tokenizer.starts_word[encoding.ids])
  for i, ((_, end), (begin, _)) in enumerate(
    zip(encoding.offsets[:-1], encoding.offsets[1:], strict=True), 1
  ):
    last, first = text[end - 1 : end], text[begin : begin + 1]
    begins[i] |= _is_symbol(last) != _is_symbol(first)
  bounds = np.append(np.flatnonzero(begins[1:]) + 1, len(begins))
  ends = bounds[np.searchsorted(bounds, np.arange(len(begins)), "right")]
  return np.maximum(ends, _one_token(tokenizer, text, encoding))


def _is_symbol(character: str) -> bool:
  return bool(character) and unicodedata.category(character)[0] in "PS"


# How --pll is defined: (tokenizer, text, encoding) -> the end of each mask. l2r
# (Kauf & Ivanova 2023, arXiv:2305.10588, section 4) also hides the tokens of a
# word to the right of the one that is predicted, as they give it away.
PLL = {"original": _one_token, "l2r": _rest_of_word}
