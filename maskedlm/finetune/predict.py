"""Predicts with a fine-tuned model: examples -> rows -> outputs -> predictions.

The training loop's evaluation, `evaluate` and `predict` all decode here.
"""

import math
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params
from maskedlm.finetune import data_files
from maskedlm.finetune.common import batching, cut_texts
from maskedlm.finetune.common.labels import keep_labelled
from maskedlm.finetune.contract import (
  Application,
  Example,
  FinetuneTask,
  Outputs,
  Prediction,
  Rows,
  Setup,
)
from maskedlm.runtime import console
from maskedlm.training.checkpoints import load


class FineTunedModel(NamedTuple):
  """A fine-tuned checkpoint that is ready to predict."""

  kind: str  # The task's name, or the file of one's own.
  task: FinetuneTask
  label_info: Mapping[str, Any]  # From task.describe_labels.
  app: Application
  params: Params
  tuned: Mapping[str, float]  # Metrics and thresholds on the development set.
  length: int  # The largest number of tokens in a row.
  positions: int  # The largest length that the encoder supports.
  pad: int  # The id of [PAD].


def open_model(
  path: str | pathlib.Path, overrides: Sequence[str] = (), *, length: int = 0
) -> FineTunedModel:
  """Opens a fine-tuned workdir (its best checkpoint) or a checkpoint.

  Args:
    overrides: tokens --config.task.NAME=VALUE; see data_files.with_overrides.
    length: the largest number of tokens in a row; 0 = as trained or imported.

  Raises:
    CheckpointError: the checkpoint can't be read.
    ConfigError: it was pretrained, not fine-tuned; an override is wrong; the
      encoder doesn't support the length.
  """
  return make_model(load.open_best(path), path, overrides, length=length)


def make_model(
  start: load.LoadedCheckpoint,
  path: str | pathlib.Path,
  overrides: Sequence[str] = (),
  *,
  length: int = 0,
) -> FineTunedModel:
  """Returns the model of an open checkpoint; error messages name `path`."""
  meta = start.meta["task"]
  task = task_of(start, path, overrides)
  check_length(length, start.cfg.max_positions)
  length = length or meta["length"]
  app = task.make_application(
    Setup(start.tokenizer, start.cfg, meta["about"], length)
  )
  return FineTunedModel(
    kind=meta["kind"],
    task=task,
    label_info=meta["about"],
    app=app,
    params=jax.device_put(start.params),
    tuned=start.meta.get("heldout", {}),
    length=length,
    positions=start.cfg.max_positions,
    pad=start.tokenizer.special.pad,
  )


def task_of(
  start: load.LoadedCheckpoint,
  path: str | pathlib.Path,
  overrides: Sequence[str],
) -> FinetuneTask:
  """Returns the task of an open checkpoint.

  Raises:
    ConfigError: it was pretrained, not fine-tuned; an override is wrong.
  """
  meta = start.meta["task"]
  if "kind" not in meta:
    raise ConfigError(
      f"{path} was pretrained, not fine-tuned: run `maskedlm finetune` with "
      f"--config.init_from={path} first."
    )
  return data_files.with_overrides(meta["kind"], meta["options"], overrides)


def check_length(length: int, positions: int) -> None:
  """Raises ConfigError unless the length is 0, or 8 to `positions`."""
  if length and not 8 <= length <= positions:
    raise ConfigError(
      f"length={length}: expected 8 to {positions}, the encoder's positions."
    )


def read_labelled(
  task: FinetuneTask, app: Application, source: str
) -> list[Example]:
  """Returns the examples of a source (data_files.py) that is to be scored.

  Those without a gold label are left out, and counted.

  Raises:
    DataError: see data_files.read_examples; no example has a label, or none of
      the labels is known.
  """
  examples = keep_labelled(
    data_files.read_examples(task, source), app.has_label, source
  )
  app.require_labels(examples)
  return examples


def place_of(example: Example) -> dict[str, str]:
  """Returns {"where": FILE:LINE} of an example that is from a file."""
  where = getattr(example, "where", "")
  return {"where": where} if where else {}


def predict(
  model: FineTunedModel,
  examples: Sequence[Example],
  *,
  batch_size: int = 32,
  progress: Callable[[int, int], None] = lambda done, count: None,
  cut: list[int] | None = None,
) -> list[Prediction]:
  """Returns a prediction for each example.

  Args:
    batch_size: examples at a time; fewer if they are long (plan_batches).
    progress: called with the number of batches done and the total.
    cut: Rows.cut is appended to it, for log_cut.

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
  if cut is not None:
    cut += rows.cut
  outputs = compute_outputs(
    model.app,
    model.params,
    rows,
    batch_size=batch_size,
    buckets=batching.make_buckets(model.length),
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
  lengths = rows.sequence_lengths(np.arange(len(rows.example)))
  plan = list(batching.plan_batches(lengths, buckets, batch_size=size))
  step = jax.jit(app.outputs)
  outputs = []
  for i, batch in enumerate(plan):
    outputs.append(step(params, batching.gather_batch(rows, batch, pad)))
    if i:  # One batch stays on the device; the others move to the host.
      outputs[i - 1] = jax.device_get(outputs[i - 1])
    progress(i + 1, len(plan))
  return by_row([batch.which for batch in plan], jax.device_get(outputs))


def by_row(
  order: Sequence[np.ndarray], outputs: Sequence[Mapping[str, np.ndarray]]
) -> Outputs:
  """Returns the outputs of batches by row, in the order of Rows.

  Args:
    order: for each batch, the indices of its rows, where -1 is a filler.
    outputs: for each batch, name -> [B, ...].
  """
  ids = np.concatenate(order)
  rows = {}
  for name in outputs[0] if outputs else ():
    flat = [row for batch in outputs for row in np.asarray(batch[name])]
    by_id = dict(zip(ids.tolist(), flat, strict=True))
    rows[name] = [by_id[i] for i in range(int(np.sum(ids >= 0)))]
  return rows


def log_cut(model: FineTunedModel, cut: Sequence[int], option: str) -> None:
  """Logs a line if examples were cut; `option` is the one for the length."""
  if cut:
    console.log(
      cut_texts.cut_note(
        cut, length=model.length, positions=model.positions, option=option
      )
    )


def show_progress(done: int, count: int) -> None:
  """Prints progress to stderr, in at most 20 lines, as log files keep all."""
  if done == count:
    console.log(f"{counted(count, 'batch')} done")
  elif done * 20 // count > (done - 1) * 20 // count:
    console.progress(f"{done:,} of {counted(count, 'batch')}")
