"""Cuts documents into rows and masks them, the same way for every model.

A document is encoded whole and cut into rows of at most L tokens; rows don't
mix documents. In each row a share of the tokens is chosen at random and
replaced by the mask token. What is chosen depends on the seed, the row's number
and its tokens, not on the batch size or the model's weights.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator

import jax
import numpy as np

from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.inference.rows import Row, pad_rows, with_ends
from maskedlm.modeling.masking import masking
from maskedlm.modeling.masking.options import CorruptionOptions

ROWS = 128  # Masked at a time.


def cut_rows(
  tokenizer: Tokenizer, documents: Iterable[np.ndarray], length: int
) -> Iterator[np.ndarray]:
  """Yields rows [l] of at most `length` tokens of documents' ids [n]."""
  for ids in documents:
    for begin in range(0, len(ids), length - 2):
      yield with_ends(ids[begin : begin + length - 2], tokenizer.special)


def make_corruption(
  tokenizer: Tokenizer, length: int, mask_rate: float
) -> Callable:
  """Returns the compiled (batch, key) -> masked batch for `mask_rows`.

  Args:
    tokenizer: of the rows.
    length: L, the most tokens of a row.
    mask_rate: share of a row's tokens that is masked, at least one.

  Raises:
    ConfigError: mask_rate is out of range.
  """
  options = CorruptionOptions(
    mask_rate=mask_rate, mask_share=1.0, random_share=0.0
  )
  counts = np.ones(tokenizer.vocab_size, np.int64)
  made = masking.make_masking(tokenizer, length, options, token_counts=counts)
  return jax.jit(made.corrupt)


def mask_rows(
  tokenizer: Tokenizer,
  rows: Iterable[np.ndarray],
  corrupt: Callable,
  *,
  length: int,
  seed: int,
) -> Iterator[Row]:
  """Yields the rows with their masks.

  Args:
    tokenizer: of the rows.
    rows: int32 [l] each, l <= length.
    corrupt: from make_corruption.
    length: L, as given to make_corruption.
    seed: decides which tokens are masked.
  """
  rows = iter(rows)
  for number in itertools.count():
    if not (group := list(itertools.islice(rows, ROWS))):
      return
    pad = tokenizer.special.pad
    batch = pad_rows([Row(row) for row in group], ROWS, length, pad=pad)
    batch["example_weights"] = np.ones(ROWS, np.float32)
    key = jax.random.fold_in(jax.random.key(seed), number)
    masked = jax.device_get(corrupt(batch, key))
    for i, row in enumerate(group):
      used = masked["masked_weights"][i] > 0
      yield Row(
        masked["input_ids"][i, : len(row)],
        masked["masked_positions"][i][used],
        masked["masked_labels"][i][used],
      )
