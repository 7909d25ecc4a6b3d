"""Counts how often a run of pretraining reads its text, and warns of much."""

from collections.abc import Sequence

from maskedlm.core.task import Task
from maskedlm.training.phases import Phase

# Muennighoff et al. 2023 (arXiv:2305.16264) find that after about 40 epochs
# more of the same text adds nothing.
MANY = 100


def count_epochs(phases: Sequence[Phase], tasks: Sequence[Task]) -> float:
  """Returns how often a run reads its text, given the Task of each phase."""
  return sum(
    (phase.end - phase.begin)
    * phase.config.data.batch_size
    / max(task.rows_per_epoch, 1)
    for phase, task in zip(phases, tasks, strict=True)
  )


def warnings(phases: Sequence[Phase], tasks: Sequence[Task]) -> list[str]:
  """Returns a warning if a run reads its text too often, else nothing."""
  epochs = count_epochs(phases, tasks)
  rows = tasks[0].rows_per_epoch
  if epochs <= MANY or not rows:
    return []
  enough = max(round(phases[-1].end * 40 / epochs), 1)
  return [
    f"warning: the run reads its {rows:,} rows {epochs:,.0f} times: beyond 40 "
    "times there is little to learn from the same text. Give more text "
    f"(corpus.source), or fewer steps (--config.train.num_steps={enough})."
  ]
