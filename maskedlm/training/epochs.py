"""Counts how often a run of pretraining reads its text, and warns of much."""

from collections.abc import Sequence

from ml_collections import ConfigDict

from maskedlm.data.batches import batching

# Muennighoff et al. 2023 (arXiv:2305.16264) find that after about 40 epochs
# more of the same text adds nothing.
MANY = 100


def count_epochs(config: ConfigDict, rows_per_epoch: Sequence[int]) -> float:
  """Returns the epochs of the first phase.

  Args:
    config: the effective config of pretraining.
    rows_per_epoch: the rows of an epoch, of each phase; at least the first is
      read.
  """
  num_steps = config.train.num_steps
  steps = num_steps - batching.num_long_steps(num_steps, config.data.long_share)
  return steps * config.data.batch_size / max(sum(rows_per_epoch[:1]), 1)


def warnings(config: ConfigDict, rows_per_epoch: Sequence[int]) -> list[str]:
  """Returns a warning if a run reads its text too often, else nothing."""
  epochs = count_epochs(config, rows_per_epoch)
  if epochs <= MANY or not rows_per_epoch:
    return []
  rows = rows_per_epoch[0]
  enough = max(round(config.train.num_steps * 40 / epochs), 1)
  return [
    f"warning: the run reads its {rows:,} rows {epochs:,.0f} times: beyond 40 "
    "times there is little to learn from the same text. Give more text "
    f"(corpus.source), or fewer steps (--config.train.num_steps={enough})."
  ]
