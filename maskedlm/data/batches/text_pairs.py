"""Makes encoder rows of one text or of a pair of texts.

[CLS] A [SEP] or [CLS] A [SEP] B [SEP], as in pretraining; if a pair is too
long, the longer text loses tokens (google-research/bert, run_classifier.py).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.data.batches.pair_rows import truncated_lengths
from maskedlm.data.tokenizers.tokenizer import Tokenizer


class PairRow(NamedTuple):
  """The row of a pair, or of a single text."""

  input_ids: np.ndarray  # int32 [l].
  token_type_ids: np.ndarray  # int32 [l]: 0 = [CLS] A [SEP], 1 = B [SEP].
  size: int  # Tokens that the row would have if nothing were cut.


def cut_sizes(examples: Iterable[Sequence[PairRow]]) -> list[int]:
  """Returns Rows.cut: the sizes of the examples that lost tokens, uncut."""
  sizes = (
    max((row.size for row in rows if row.size > len(row.input_ids)), default=0)
    for rows in examples
  )
  return [size for size in sizes if size]


def text_row(tokenizer: Tokenizer, *ids) -> np.ndarray:
  """Returns [CLS] ids ... [SEP], int32 [l], given one or more arrays of ids."""
  cls, sep = tokenizer.special.cls, tokenizer.special.sep
  return np.concatenate([[cls], *ids, [sep]]).astype(np.int32)


def text_tokens(
  tokenizer: Tokenizer, texts: Sequence[np.ndarray]
) -> dict[str, list[np.ndarray]]:
  """Returns Rows.tokens for single texts, given the ids [n] of each text."""
  rows = [text_row(tokenizer, ids) for ids in texts]
  return {"input_ids": rows, "token_type_ids": [0 * row for row in rows]}


def pair_row(
  tokenizer: Tokenizer,
  a_ids,
  b_ids,
  length: int,
  *,
  separators: int = 1,
  num_types: int = 2,
) -> PairRow:
  """Returns the row of a pair, or of a single text if b_ids is None.

  Args:
    tokenizer: supplies [CLS] and [SEP].
    a_ids, b_ids: ids [n] without special tokens.
    length: L, the largest number of tokens, including special ones.
    separators: number of [SEP] between the texts, as in pretraining
      (EncoderConfig.pair_separators).
    num_types: EncoderConfig.num_types. Below 2, as in an encoder pretrained on
      single texts, all token types are 0.
  """
  if b_ids is None:
    ids = text_row(tokenizer, a_ids[: length - 2])
    return PairRow(ids, 0 * ids, len(a_ids) + 2)
  a, b = truncated_lengths(
    len(a_ids), len(b_ids), maximum=length - 2 - separators
  )
  between = [tokenizer.special.sep] * separators
  ids = text_row(tokenizer, a_ids[:a], between, b_ids[:b])
  is_b = np.arange(len(ids)) > a + separators
  types = (is_b & (num_types > 1)).astype(np.int32)
  return PairRow(ids, types, len(a_ids) + len(b_ids) + 2 + separators)
