"""One text or a pair of texts -> a row that the encoder reads.

[CLS] A [SEP] or [CLS] A [SEP] B [SEP], as in pretraining; of a pair that is
too long the longer text loses tokens (google-research/bert, run_classifier.py).
"""

from collections.abc import Sequence

import numpy as np

from maskedlm.data.tokenizers.tokenizer import Tokenizer


def text_row(tokenizer: Tokenizer, *parts) -> np.ndarray:
  """The row [l] int32 of a text, given the ids [n] of its parts, in order."""
  cls, sep = tokenizer.special.cls, tokenizer.special.sep
  return np.concatenate([[cls], *parts, [sep]]).astype(np.int32)


def text_tokens(
  tokenizer: Tokenizer, texts: Sequence[np.ndarray]
) -> dict[str, list[np.ndarray]]:
  """Rows.tokens of single texts, given the ids [n] of each."""
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
) -> tuple[np.ndarray, np.ndarray, bool]:
  """The row of a pair, or of a single text where b_ids is None.

  Args:
    tokenizer: whose [CLS] and [SEP] are taken.
    a_ids, b_ids: [n] ids without specials.
    length: L, the most tokens, specials included.
    separators: [SEP] between the texts, as the encoder was pretrained
      (EncoderConfig.pair_separators).
    num_types: that it knows (EncoderConfig.num_types). One that was pretrained
      on single texts may have but one, or none: all are 0.

  Returns:
    (input_ids [l] int32, token_type_ids [l] int32, whether tokens were lost).
    Types: 0 = [CLS] A [SEP], 1 = B [SEP].
  """
  if b_ids is None:
    ids = text_row(tokenizer, a_ids[: length - 2])
    return ids, 0 * ids, len(a_ids) > length - 2
  a, b = truncated_lengths(len(a_ids), len(b_ids), length - 2 - separators)
  between = [tokenizer.special.sep] * separators
  ids = text_row(tokenizer, a_ids[:a], between, b_ids[:b])
  is_b = np.arange(len(ids)) > a + separators
  lost = a < len(a_ids) or b < len(b_ids)
  return ids, np.int32(is_b & (num_types > 1)), lost


def truncated_lengths(a: int, b: int, total: int) -> tuple[int, int]:
  """What remains of lengths a and b when the longer one gives way to total.

  As if tokens went one by one from the longer; from b where they are equal.
  """
  half = total // 2
  return (
    min(a, max(total - b, total - half)),
    min(b, max(total - a, half)),
  )
