"""One text or a pair of texts -> a row that the encoder reads.

[CLS] A [SEP] or [CLS] A [SEP] B [SEP], as in pretraining; of a row that is
too long the longer text loses tokens (google-research/bert, run_classifier.py).
"""

import numpy as np

from maskedlm.corpus.tokenizer import Tokenizer


def pair_row(
  tokenizer: Tokenizer, a_ids, b_ids, length: int, *, separators: int = 1
) -> tuple[np.ndarray, np.ndarray, bool]:
  """The row of a pair, or of a single text where b_ids is None.

  Args:
    tokenizer: whose [CLS] and [SEP] are taken.
    a_ids, b_ids: [n] ids without specials.
    length: L, the most tokens, specials included.
    separators: [SEP] between the texts, as the encoder was pretrained
      (EncoderConfig.pair_separators).

  Returns:
    (input_ids [l] int32, token_type_ids [l] int32, whether tokens were lost).
    Types: 0 = [CLS] A [SEP], 1 = B [SEP].
  """
  special = tokenizer.special
  if b_ids is None:
    kept = a_ids[: length - 2]
    ids = np.concatenate([[special.cls], kept, [special.sep]]).astype(np.int32)
    return ids, np.zeros(len(ids), np.int32), len(kept) < len(a_ids)
  between = [special.sep] * separators
  a, b = truncated_lengths(len(a_ids), len(b_ids), length - 2 - separators)
  ids = np.concatenate(
    [[special.cls], a_ids[:a], between, b_ids[:b], [special.sep]]
  )
  types = np.repeat([0, 1], [a + 1 + separators, b + 1])
  lost = a < len(a_ids) or b < len(b_ids)
  return ids.astype(np.int32), types.astype(np.int32), lost


def truncated_lengths(a: int, b: int, total: int) -> tuple[int, int]:
  """What remains of lengths a and b when the longer one gives way to total.

  As if tokens went one by one from the longer; from b where they are equal.
  """
  half = total // 2
  return (
    min(a, max(total - b, total - half)),
    min(b, max(total - a, half)),
  )
