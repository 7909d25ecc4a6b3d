"""Cuts documents into rows and masks them, the same way for every model.

A document is encoded whole and cut into rows of at most L tokens; rows don't
mix documents. In each row a share of the tokens is chosen at random and
replaced by the mask token. What is chosen depends on the seed, the row's number
and its tokens, not on the batch size or the model's weights.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np

from maskedlm.core.task import Batch
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.modeling.masking import masking
from maskedlm.modeling.masking.options import CorruptionOptions

ROWS = 128  # Masked at a time.


class MaskedRow(NamedTuple):
  """A row of a document."""

  ids: np.ndarray  # [l] int32: [CLS], tokens, [SEP]; some are masked.
  positions: np.ndarray  # [p] int32, of the masked tokens.
  labels: np.ndarray  # [p] int32, the tokens that were there.


def cut_rows(
  tokenizer: Tokenizer, documents: Iterable[np.ndarray], length: int
) -> Iterator[np.ndarray]:
  """Yields rows [l] of at most `length` tokens of documents' ids [n]."""
  special = tokenizer.special
  for ids in documents:
    for begin in range(0, len(ids), length - 2):
      part = ids[begin : begin + length - 2]
      yield np.array([special.cls, *part, special.sep], np.int32)


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
) -> Iterator[MaskedRow]:
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
    batch = pad_rows(group, (ROWS, length), tokenizer.special.pad)
    batch["example_weights"] = np.ones(ROWS, np.float32)
    key = jax.random.fold_in(jax.random.key(seed), number)
    masked = jax.device_get(corrupt(batch, key))
    for i, row in enumerate(group):
      used = masked["masked_weights"][i] > 0
      yield MaskedRow(
        masked["input_ids"][i, : len(row)],
        masked["masked_positions"][i][used],
        masked["masked_labels"][i][used],
      )


def pad_rows(
  rows: Sequence[np.ndarray], shape: tuple[int, int], pad: int
) -> dict[str, np.ndarray]:
  """Returns input_ids, token_type_ids and segment_ids [B, L] of rows [l]."""
  input_ids = np.full(shape, pad, np.int32)
  segment_ids = np.zeros(shape, np.int32)
  for i, row in enumerate(rows):
    input_ids[i, : len(row)] = row
    segment_ids[i, : len(row)] = 1
  return {
    "input_ids": input_ids,
    "token_type_ids": np.zeros(shape, np.int32),
    "segment_ids": segment_ids,
  }


def make_batch(
  rows: Sequence[MaskedRow], *, batch_size: int, length: int, pad: int
) -> Batch:
  """Returns a batch of masked rows, for masked_lm.loss_and_correct.

  It is as long as the longest row, rounded up to a power of 2, and at most
  `length`, so that a few shapes are compiled.
  """
  longest = max(len(row.ids) for row in rows)
  shape = batch_size, min(power_of_2(longest), length)
  batch = pad_rows([row.ids for row in rows], shape, pad)
  most = power_of_2(max(len(row.labels) for row in rows))
  shape = batch_size, most
  batch["masked_positions"] = np.zeros(shape, np.int32)
  batch["masked_labels"] = np.zeros(shape, np.int32)
  batch["masked_weights"] = np.zeros(shape, np.float32)
  for i, row in enumerate(rows):
    n = len(row.labels)
    batch["masked_positions"][i, :n] = row.positions
    batch["masked_labels"][i, :n] = row.labels
    batch["masked_weights"][i, :n] = 1
  return batch


def power_of_2(n: int) -> int:
  """Returns the smallest power of 2 that is at least n, and at least 8."""
  return max(1 << (n - 1).bit_length(), 8)
