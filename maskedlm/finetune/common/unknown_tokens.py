"""Reports how many tokens of labelled data the vocabulary lacks."""

from collections.abc import Iterator

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.contract import Rows


def unknown_notes(rows: Rows, tokenizer: Tokenizer) -> Iterator[str]:
  """Yields a line if tokens of the rows are [UNK]."""
  unk = tokenizer.special.unk
  count = sum(int(np.sum(ids == unk)) for ids in rows.tokens["input_ids"])
  if count:
    total = int(np.sum(rows.lengths))
    yield (
      f"{count:,} of {counted(total, 'token')} ({count / total:.1%}) are "
      f"{tokenizer.tokens(unk)}, which stands for what the vocabulary lacks"
    )
