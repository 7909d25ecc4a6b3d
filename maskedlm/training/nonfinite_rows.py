"""What a run that diverged leaves: an error, and the rows of its last steps."""

import json
import pathlib

from maskedlm.core.task import Task
from maskedlm.runtime import buckets, multihost


class NonFiniteError(RuntimeError):
  """Too many steps in a row were not finite."""

  exit_code = 3


def error(
  task: Task, workdir: pathlib.Path, step: int, in_a_row: int
) -> NonFiniteError:
  """Returns the error; writes the row ids to WORKDIR/nonfinite-STEP.json.

  Args:
    task: whose rows were read.
    workdir: the run's.
    step: the last step that was not finite, from 1.
    in_a_row: how many were, with it and before it.
  """
  bad = range(step - in_a_row + 1, step + 1)
  rows = {s: [int(i) for i in task.row_ids("train", s - 1)] for s in bad}
  path = workdir / f"nonfinite-{step}.json"
  multihost.write_text(path, json.dumps({"row_ids": rows}))
  return NonFiniteError(
    f"steps {bad[0]} to {step}: the loss or the gradient was not finite "
    f"{in_a_row} times in a row; none of these steps was applied. Their rows "
    f"are listed in {buckets.origin(path)}: inspect them, or lower "
    "optimizer.learning_rate."
  )
