"""Stops a run that diverged, and writes the ids of the rows it read last."""

import json
import pathlib
from typing import Any

from maskedlm.core.task import Task
from maskedlm.runtime import buckets, multihost


class NonFiniteError(RuntimeError):
  """Too many steps in a row were not finite."""

  exit_code = 3


class SpikeError(RuntimeError):
  """The loss of a step was a spike, and train.on_spike is "stop"."""

  exit_code = 3


def check(
  task: Task, workdir: pathlib.Path, step: int, failed, options: Any
) -> None:
  """Raises an error, and writes the ids of the rows, if a run must stop.

  Args:
    task: whose rows were read.
    workdir: receives nonfinite-STEP.json or spike-STEP.json.
    step: the step, from 1.
    failed: how many steps in a row were not finite until then, and whether its
      loss was a spike; shape=(), int32 each.
    options: config.train.

  Raises:
    NonFiniteError: train.nonfinite_limit steps in a row were not finite.
    SpikeError: it was a spike, and train.on_spike="stop".
  """
  nonfinite, spiked = map(int, failed)
  if nonfinite >= options.nonfinite_limit:
    bad = range(step - nonfinite + 1, step + 1)
    path = _write_rows(task, workdir / f"nonfinite-{step}.json", bad)
    raise NonFiniteError(
      f"steps {bad[0]} to {step}: the loss or the gradient was not finite "
      f"{nonfinite} times in a row; none of these steps was applied. Their "
      f"rows are listed in {path}: inspect them, or lower "
      "optimizer.learning_rate."
    )
  if spiked and options.on_spike == "stop":
    path = _write_rows(task, workdir / f"spike-{step}.json", [step])
    raise SpikeError(
      f"step {step}: its loss was over train.spike_sigma={options.spike_sigma} "
      "standard deviations above those before; it was not applied. Its rows "
      f"are listed in {path}. To go on, skip such steps, "
      "--config.train.on_spike=skip, or take them, "
      "--config.train.spike_sigma=0."
    )


def _write_rows(task: Task, path: pathlib.Path, steps) -> Any:
  """Writes {"row_ids": {step: ids}}; returns where it is."""
  rows = {s: [int(i) for i in task.row_ids("train", s - 1)] for s in steps}
  multihost.write_text(path, json.dumps({"row_ids": rows}))
  return buckets.origin(path)
