"""Checks, before the first step, that the training rows teach something.

Otherwise the loss is 0, or that of rows which hold nothing to find, and no step
fails.
"""

import jax

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.core.task import Task
from maskedlm.finetune.contract import Rows
from maskedlm.training.step import split_batch


def check_rows(rows: Rows) -> None:
  """Raises DataError if no row holds what is to be learnt."""
  if rows.lost:
    raise DataError(f"train: nothing can be learnt: {rows.lost}")


def check_batches(task: Task, *, num_batches: int, accumulate: int) -> None:
  """Checks that some row of an epoch counts in the loss.

  On several hosts nothing is checked, as a host has a part of each batch.

  Args:
    task: the Task of fine-tuning.
    num_batches: of an epoch; most often, only the first is read.
    accumulate: the number of microbatches of a batch.

  Raises:
    DataError: no row of any batch counts.
  """
  if jax.process_count() > 1:
    return

  @jax.jit
  def weight_of(batch, i):
    # Only the weights are used, so the compiler removes the forward pass.
    batch = jax.tree.map(lambda x: x[i], split_batch(batch, accumulate))
    params = task.init(jax.random.key(0))
    terms, _ = task.loss(params, batch, jax.random.key(0), False)
    return sum(weight.sum() for _, weight in terms.values())

  for step in range(num_batches):
    batch = task.batch_at("train", step)
    if any(weight_of(batch, i) > 0 for i in range(accumulate)):
      return
  raise DataError(
    f"train: no example counts in the loss of any of "
    f"{counted(num_batches, 'batch')} of {task.describe['kind']}, "
    "so nothing can be learnt. Where examples are told apart from others of "
    "their batch, raise --config.data.batch_size (or lower train.accumulate), "
    "or give other examples."
  )
