"""Checks the rows of a run before its first step: do they teach something?"""

from collections.abc import Iterator

import jax
import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.core.task import Task
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.contract import Rows
from maskedlm.training import gradient_cache
from maskedlm.training.microbatches import split_batch


def unknown_notes(rows: Rows, tokenizer: Tokenizer) -> Iterator[str]:
  """Yields a line if tokens of the rows are [UNK]."""
  unk = tokenizer.special.unk
  count = sum(int(np.sum(ids == unk)) for ids in rows.tokens["input_ids"])
  if count:
    total = int(rows.sequence_lengths(np.arange(len(rows.example))).sum())
    yield (
      f"{count:,} of {counted(total, 'token')} ({count / total:.1%}) are "
      f"{tokenizer.tokens(unk)}, which stands for what the vocabulary lacks"
    )


def check_batches(task: Task, *, num_batches: int, accumulate: int) -> None:
  """Checks that some row of an epoch of num_batches counts in the loss.

  Otherwise the loss would be 0, and no step would fail. Most often only the
  first batch is read. On several hosts nothing is checked, as a host has a part
  of each batch.

  Raises:
    DataError: no row of any batch counts.
  """
  if jax.process_count() > 1:
    return
  task, accumulate = gradient_cache.divide(task, accumulate)

  @jax.jit
  def has_weight(batch, i):
    # Only the weights are used, so the compiler removes the forward pass.
    batch = jax.tree.map(lambda x: x[i], split_batch(batch, accumulate))
    params = task.init(jax.random.key(0))
    terms, _ = task.loss(params, batch, jax.random.key(0), False)
    return sum(weight.sum() for _, weight in terms.values()) > 0

  for step in range(num_batches):
    batch = task.batch_at("train", step)
    if any(has_weight(batch, i) for i in range(accumulate)):
      return
  raise DataError(
    f"train: every batch of {task.describe['kind']} has weight 0 in the loss, "
    "so nothing can be learnt. A loss that compares examples needs two in a "
    "batch, of different passages or grades: raise --config.data.batch_size, "
    "or give other examples."
  )
