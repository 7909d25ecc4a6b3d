"""Makes one run of the Tasks of its phases."""

from collections.abc import Callable, Sequence

import jax

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import NOTHING, Carried, Task
from maskedlm.training.phases import Phase, format_changes, phase_index


def join_tasks(phases: Sequence[Phase], tasks: Sequence[Task]) -> list[Task]:
  """Returns the Tasks of the phases as parts of one run.

  They take the run's steps, of any phase, and have the held-out set of the
  first phase, which all objectives of the run measure, so that the losses of a
  run can be compared.

  Args:
    phases: the result of `split`.
    tasks: the Task of each phase's config.

  Raises:
    ConfigError: a phase changes the parameters of the model.
  """
  if len(tasks) == 1:
    return list(tasks)
  first = tasks[0]
  _check_parameters(phases, tasks)

  def task_at(step: int) -> tuple[Task, int]:
    index = phase_index(phases, step)
    begin, first_batch = phases[index].begin, phases[index].first_batch
    return tasks[index], step - begin + first_batch

  def batch_at(split: str, step: int):
    task, step = task_at(step) if split == "train" else (first, step)
    return task.batch_at(split, step)

  def row_ids(split: str, step: int):
    task, step = task_at(step) if split == "train" else (first, step)
    return task.row_ids(split, step)

  def flops(step: int) -> float:
    task, step = task_at(step)
    return task.flops(step)

  return [
    task._replace(
      batch_at=batch_at,
      row_ids=row_ids,
      flops=flops,
      num_heldout_batches=first.num_heldout_batches,
      heldout=_heldout(phases, tasks, index),
      carried=_carried(task, tasks),
    )
    for index, task in enumerate(tasks)
  ]


def _check_parameters(phases: Sequence[Phase], tasks: Sequence[Task]) -> None:
  """Raises ConfigError if the parameters of a phase are not the first's."""
  first, *later = [
    jax.eval_shape(lambda task=task: task.init(jax.random.key(0)))
    for task in tasks
  ]
  for phase, shapes in zip(phases[1:], later, strict=True):
    parts = sorted(
      name
      for name in first.keys() | shapes.keys()
      if first.get(name) != shapes.get(name)
    )
    if parts:
      raise ConfigError(
        f"phases: {format_changes(phase) or 'another task'} from step "
        f"{phase.begin:,} on changes the model's parameters "
        f"({', '.join(parts)}), which must stay; leave it out, or continue in "
        "another run by init_from."
      )


def _heldout(phases: Sequence[Phase], tasks: Sequence[Task], index: int):
  """Returns Task.heldout of a phase.

  The last phase's objective comes first, and its loss alone is the run's: the
  others add metrics. An objective masks as in the first phase that has it. Its
  loss is of its last phase up to this one, or of its first if that is later.
  """
  names = [phase.config.objective.name for phase in phases]

  def metrics_only(loss):
    return lambda *args: ({}, loss(*args)[1])

  pairs: list[tuple[Callable, Callable]] = []
  for name in dict.fromkeys([names[-1], *names]):
    indices = [i for i, other in enumerate(names) if other == name]
    now = max((i for i in indices if i <= index), default=indices[0])
    masks, measures = tasks[indices[0]].measured, tasks[now].measured
    for (corrupt, _), (_, loss) in zip(masks, measures, strict=True):
      pairs.append((corrupt, loss if name == names[-1] else metrics_only(loss)))
  return tuple(pairs)


def _carried(task: Task, tasks: Sequence[Task]) -> Carried:
  """Returns Task.carried of a phase: one without passes on the others'."""
  if task.carried is not NOTHING:
    return task.carried
  others = (t.carried for t in tasks if t.carried is not NOTHING)
  return NOTHING._replace(init=next(others, NOTHING).init)
