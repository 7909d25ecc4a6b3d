"""Predicts with a fine-tuned model: examples -> rows -> outputs -> predictions.

The training loop's evaluation, `evaluate` and `predict` all decode here.
"""

import dataclasses
import math
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from maskedlm.core.errors import ConfigError, check_name
from maskedlm.core.task import Params
from maskedlm.finetune import data_files
from maskedlm.finetune.common import batching
from maskedlm.finetune.config import load_task
from maskedlm.finetune.contract import (
  Application,
  Example,
  FinetuneTask,
  Options,
  Outputs,
  Prediction,
  Rows,
  Setup,
)
from maskedlm.runtime import console
from maskedlm.training.checkpoints import load


class FineTunedModel(NamedTuple):
  """A fine-tuned checkpoint that is ready to predict."""

  task: FinetuneTask
  options: Options
  label_info: Mapping[str, Any]  # From task.describe_labels.
  app: Application
  params: Params
  tuned: Mapping[str, float]  # Metrics and thresholds on the development set.
  length: int  # The largest number of tokens in a row.
  pad: int  # The id of [PAD].


def open_model(
  path: str | pathlib.Path, overrides: Sequence[str] = ()
) -> FineTunedModel:
  """Opens a fine-tuned workdir (its best checkpoint) or a checkpoint.

  Args:
    path: the workdir or the checkpoint.
    overrides: tokens --config.task.NAME=VALUE; see data_files.override_options.

  Raises:
    CheckpointError: the checkpoint can't be read.
    ConfigError: it was pretrained, not fine-tuned; an override is wrong.
  """
  return make_model(load.open_best(path), path, overrides)


def make_model(
  start: load.LoadedCheckpoint,
  path: str | pathlib.Path,
  overrides: Sequence[str] = (),
) -> FineTunedModel:
  """Returns the model of an open checkpoint; error messages name `path`.

  Raises:
    ConfigError: it was pretrained, not fine-tuned; an override is wrong.
  """
  meta = start.meta["task"]
  if "kind" not in meta:
    raise ConfigError(
      f"{path} was pretrained, not fine-tuned: run `maskedlm finetune` with "
      f"--config.init_from={path} first."
    )
  task = load_task(meta["kind"])
  options = data_files.override_options(
    task, make_options(task, meta["options"]), overrides
  )
  app = task.make_application(
    Setup(start.tokenizer, start.cfg, meta["about"], meta["length"]), options
  )
  return FineTunedModel(
    task=task,
    options=options,
    label_info=meta["about"],
    app=app,
    params=jax.device_put(start.params),
    tuned=start.meta.get("heldout", {}),
    length=meta["length"],
    pad=start.tokenizer.special.pad,
  )


def make_options(task: FinetuneTask, values: Mapping[str, Any]) -> Options:
  """Returns the task's options with the given values; lists become tuples.

  Raises:
    ConfigError: the task has no such option; a value is wrong.
  """
  known = [field.name for field in dataclasses.fields(task.options)]
  for name in values:
    check_name("task", name, known)
  options = task.options(
    **{n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
  )
  data_files.check_options(task, options)
  return options


def read_labelled(
  task: FinetuneTask, app: Application, options: Options, source: str
) -> list[Example]:
  """Returns the examples of a source (data_files.py) that is to be scored.

  Raises:
    DataError: see data_files.read_examples; an example has no label.
  """
  examples = data_files.read_examples(task, source, options)
  app.require_labels(examples)
  return examples


def predict(
  model: FineTunedModel,
  examples: Sequence[Example],
  *,
  batch_size: int = 32,
  progress: Callable[[int, int], None] = lambda done, count: None,
) -> list[Prediction]:
  """Returns a prediction for each example.

  Raises:
    ConfigError: batch_size is below 1.
  """
  if batch_size < 1:
    raise ConfigError(f"batch_size={batch_size}: expected at least 1.")
  if not examples:
    return []
  rows = model.app.make_rows(examples)
  for note in rows.notes:
    console.log(note)
  outputs = compute_outputs(
    model.app,
    model.params,
    rows,
    batch_size=batch_size,
    buckets=batching.make_buckets(model.length, ()),
    pad=model.pad,
    progress=progress,
  )
  return model.app.decode(examples, rows, outputs, model.tuned)


def compute_outputs(
  app: Application,
  params: Params,
  rows: Rows,
  *,
  batch_size: int,
  buckets: Sequence[int],
  pad: int,
  progress: Callable[[int, int], None] = lambda done, count: None,
) -> Outputs:
  """Returns the outputs of the rows, computed on one device.

  `progress` is called with the number of batches done and the total.
  """
  # A small input gets a small batch, a power of 2, so that few are compiled.
  size = min(batch_size, 1 << math.ceil(math.log2(max(len(rows.example), 1))))
  batches = batching.heldout_batches(
    rows, batch_size=size, buckets=buckets, pad=pad, shard=(0, 1)
  )
  step = jax.jit(app.outputs)
  found = []
  for i in range(batches.num_steps):
    found.append(step(params, batches.batch_at(i)))
    if i:  # One batch stays on the device; the others move to the host.
      found[i - 1] = jax.device_get(found[i - 1])
    progress(i + 1, batches.num_steps)
  return by_row(batches, jax.device_get(found))


def by_row(
  batches: batching.RowBatches, outputs: Sequence[Mapping[str, np.ndarray]]
) -> Outputs:
  """Returns the outputs of held-out batches by row, in the order of Rows."""
  order = np.concatenate([batches.row_ids(i) for i in range(len(outputs))])
  names = outputs[0] if outputs else ()
  rows: dict[str, list] = {}
  for name in names:
    flat = [row for batch in outputs for row in np.asarray(batch[name])]
    rows[name] = [None] * int(np.sum(order >= 0))
    for index, row in zip(order, flat, strict=True):
      if index >= 0:
        rows[name][index] = row
  return rows


def show_progress(done: int, count: int) -> None:
  """Prints progress to stderr, in at most 20 lines, as log files keep all."""
  if done == count:
    console.log(f"{count:,} batches done")
  elif done * 20 // count > (done - 1) * 20 // count:
    console.progress(f"{done:,} of {count:,} batches")
