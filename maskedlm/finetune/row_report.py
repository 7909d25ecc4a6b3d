"""Logs what the rows of a run hold, and refuses those that teach nothing.

Without the latter the loss would be 0, or that of rows which hold nothing to
find, and no step would fail.
"""

from collections.abc import Iterator, Sequence

import jax
import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.core.task import Task
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import batching, cut_texts
from maskedlm.finetune.common.packing import PackingLayout
from maskedlm.finetune.contract import Example, Rows
from maskedlm.runtime.console import log
from maskedlm.training.step import split_batch


def log_rows(
  name: str,
  examples: Sequence[Example],
  rows: Rows,
  *,
  tokenizer: Tokenizer,
  length: int,
) -> None:
  """Logs the size of a set, what was cut, and the task's notes.

  Args:
    name: of the set, "train" or "dev".
    examples, rows: the set.
    tokenizer: of the rows.
    length: config.data.length.
  """
  log(
    f"{name}: {counted(len(examples), 'example')} in "
    f"{counted(len(rows.example), 'row')}, "
    f"{float(np.mean(rows.lengths)):.1f} tokens on average; "
    f"{cut_texts.cut_count(rows.cut)} data.length={length}"
  )
  for note in (*rows.notes, *unknown_notes(rows, tokenizer)):
    log(f"{name}: {note}")


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


def log_padding(
  rows: Rows,
  batches: batching.RowBatches,
  layout: PackingLayout,
  *,
  microbatches: int,
  texts: int,
  length: int,
) -> None:
  """Logs the share of padding in training, and that without packing.

  Args:
    rows, batches: of the training set.
    layout: that of a microbatch.
    microbatches: in a batch.
    texts: in a batch: rows, or their sequences.
    length: config.data.length.
  """
  share = batching.estimate_padding_share(rows, batches)
  sizes = batching.sequence_lengths(rows, np.arange(len(rows.example)))
  unpacked = 1 - float(np.mean(sizes)) / length
  counts = sorted({microbatches * count for count in layout.counts})
  of_rows = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else counts[0]
  log(
    f"padding: {share:.1%} ({texts} texts share {of_rows} rows of "
    f"{layout.length} tokens); without packing {unpacked:.1%}"
  )


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
    f"train: every batch of {task.describe['kind']} has weight 0 in the loss, "
    "so nothing can be learnt. In-batch negatives need two examples in a "
    "microbatch: raise --config.data.batch_size, or lower train.accumulate. Or "
    "give other examples."
  )
