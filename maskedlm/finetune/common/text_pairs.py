"""Rows of texts and pairs (data/batches/text_pairs.py), as encoders read them.

Tasks of one's own import that file's functions from here.
"""

import functools
from collections.abc import Callable

from maskedlm.data.batches.text_pairs import cut_sizes as cut_sizes
from maskedlm.data.batches.text_pairs import pair_row as pair_row
from maskedlm.data.batches.text_pairs import text_row as text_row
from maskedlm.data.batches.text_pairs import text_tokens as text_tokens
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.modeling.architecture import EncoderConfig


def row_maker(
  tokenizer: Tokenizer, cfg: EncoderConfig, length: int
) -> Callable:
  """Returns pair_row(ids of A, ids of B or None) for an encoder."""
  return functools.partial(
    pair_row,
    tokenizer,
    length=length,
    separators=cfg.pair_separators,
    num_types=cfg.num_types,
  )
