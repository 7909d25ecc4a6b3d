"""Rows of texts and pairs, as encoders read them."""

import functools
from collections.abc import Callable

from maskedlm.data.batches.text_pairs import pair_row
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.modeling.architecture import EncoderConfig


def row_maker(
  tokenizer: Tokenizer, cfg: EncoderConfig, length: int
) -> Callable:
  """Returns pair_row(ids of A, ids of B or None) for an encoder."""
  how = {"separators": cfg.pair_separators, "num_types": cfg.num_types}
  return functools.partial(pair_row, tokenizer, length=length, **how)
