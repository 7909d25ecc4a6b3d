"""A fine-tuned model at work: examples -> rows -> outputs -> predictions.

The loop's evaluation, `evaluate` and `predict` all decode here.
"""

import math
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params
from maskedlm.finetune import data_files
from maskedlm.finetune.common import batching
from maskedlm.finetune.config import load_kind
from maskedlm.finetune.contract import (
  Application,
  Example,
  Outputs,
  Prediction,
  Rows,
)
from maskedlm.runtime import console
from maskedlm.training.checkpoints import load


class FineTunedModel(NamedTuple):
  """A fine-tuned checkpoint made ready."""

  kind: Any  # The kind's module.
  options: Any  # Its Options.
  about: Mapping[str, Any]  # What its training set fixed: labels.
  app: Application
  params: Params
  tuned: Mapping[str, float]  # Of the development set: metrics, thresholds.
  length: int
  pad: int


def open_model(
  path: str | pathlib.Path, overrides: Sequence[str] = ()
) -> FineTunedModel:
  """Opens a fine-tuned workdir (its best checkpoint) or a checkpoint.

  Args:
    path: of the workdir or the checkpoint.
    overrides: options of how files are read, see reading.py.

  Raises:
    CheckpointError, ConfigError: see opening.py and reading.py; and for a
      checkpoint of pretraining.
  """
  return make_model(load.open_best(path), path, overrides)


def make_model(
  start: load.LoadedCheckpoint,
  path: str | pathlib.Path,
  overrides: Sequence[str] = (),
) -> FineTunedModel:
  """As open_model, of what is open; path is for the error.

  Raises:
    ConfigError: a checkpoint of pretraining, overrides that can't be.
  """
  task = start.meta["task"]
  if "kind" not in task:
    raise ConfigError(
      f"{path} was pretrained, not fine-tuned: run `maskedlm finetune` with "
      f"--config.init_from={path} first."
    )
  kind = load_kind(task["kind"])
  options = make_options(kind, task["options"])
  options = data_files.override(kind, options, overrides)
  app = kind.make(
    start.tokenizer, start.cfg, task["about"], options, length=task["length"]
  )
  return FineTunedModel(
    kind=kind,
    options=options,
    about=task["about"],
    app=app,
    params=jax.device_put(start.params),
    tuned=start.meta.get("heldout", {}),
    length=task["length"],
    pad=start.tokenizer.special.pad,
  )


def make_options(kind, values: Mapping[str, Any]):
  """The kind's Options; JSON's lists are tuples again.

  Raises:
    ConfigError: an option that the kind doesn't have.
  """
  known = kind.Options._field_defaults
  for name in values:
    if name not in known:
      raise ConfigError(
        f"task.{name} is no option of this kind; it has {', '.join(known)}."
      )
  return kind.Options(
    **{n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
  )


def read_labelled(
  kind, app: Application, options: Any, source: str
) -> list[Example]:
  """The examples of a source (reading.py) that is to be scored.

  Raises:
    DataError: see reading.read; an example without a label: told now, not after
      the model has seen them all.
  """
  examples = data_files.read(kind, source, options)
  app.gold(examples)
  return examples


def predict(
  model: FineTunedModel,
  examples: Sequence[Example],
  *,
  batch_size: int = 32,
  progress: Callable[[int, int], None] = lambda done, count: None,
) -> list[Prediction]:
  """A prediction for each example.

  Raises:
    ConfigError: a batch_size below 1.
  """
  if batch_size < 1:
    raise ConfigError(f"batch_size={batch_size}: expected at least 1.")
  if not examples:
    return []
  rows = model.app.rows(examples)
  for note in rows.notes:
    console.log(note)
  outputs = run(
    model.app,
    model.params,
    rows,
    batch_size=batch_size,
    buckets=batching.make_buckets(model.length, ()),
    pad=model.pad,
    progress=progress,
  )
  return model.app.decode(examples, rows, outputs, model.tuned)


def run(
  app: Application,
  params: Params,
  rows: Rows,
  *,
  batch_size: int,
  buckets: Sequence[int],
  pad: int,
  progress: Callable[[int, int], None] = lambda done, count: None,
) -> Outputs:
  """The outputs of the rows, on one device; progress(batches done, of all)."""
  # A small input takes a small batch: a power of 2, for few compilations.
  size = min(batch_size, 1 << math.ceil(math.log2(max(len(rows.example), 1))))
  batches = batching.heldout_batches(
    rows, batch_size=size, buckets=buckets, pad=pad, shard=(0, 1)
  )
  step = jax.jit(app.outputs)
  made = []
  for i in range(batches.num_steps):
    made.append(step(params, batches.batch_at(i)))
    if i:  # One runs ahead, the others are on the host.
      made[i - 1] = jax.device_get(made[i - 1])
    progress(i + 1, batches.num_steps)
  return by_row(batches, jax.device_get(made))


def by_row(
  batches: batching.RowBatches, outputs: Sequence[Mapping[str, np.ndarray]]
) -> Outputs:
  """Outputs of batches [B, ...] -> those of rows, in the order of Rows."""
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


def show(done: int, count: int) -> None:
  """A progress line on stderr, for long work: 20 at most, for logs keep all."""
  if done == count:
    console.log(f"{count:,} batches done")
  elif done * 20 // count > (done - 1) * 20 // count:
    console.progress(f"{done:,} of {count:,} batches")
