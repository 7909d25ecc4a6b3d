"""Applications of every task: examples, parameters, batches."""

import jax
import numpy as np
import pytest

from helpers import task_files
from helpers.encoder_reference import randomise
from maskedlm.finetune import config as configs
from maskedlm.finetune import predict
from maskedlm.finetune.common import batching, packing
from maskedlm.finetune.contract import Setup
from maskedlm.training.step import totals


def make(name, encoder, folder):
  """Returns (examples, Application, params of two members) of a task.

  Args:
    name: the task's.
    encoder: a LoadedCheckpoint.
    folder: where the file of examples is written.
  """
  file = task_files.make_file(name, 9, 1)
  path = folder / f"data{file.suffix}"
  path.write_text(file.text)
  task = configs.make_task(name, file.options)
  examples = task.read_examples(str(path))
  setup = Setup(
    encoder.tokenizer,
    encoder.cfg,
    task.describe_labels(examples),
    24,
  )
  app = task.make_application(setup)
  shapes = jax.eval_shape(app.init, jax.random.key(0))
  own = [{**encoder.params, **randomise(shapes, seed)} for seed in (1, 2)]
  return examples, app, own


def run_batches(app, params, rows, *, length, batch_size=4):
  """Returns the totals of all batches, and their outputs by row.

  The totals are {name: [sum, weight]} of the losses and of the metrics.
  """
  batches = batching.heldout_batches(
    rows,
    batch_size=batch_size,
    length=length,
    row_length=length,
    microbatches=packing.microbatch_rows(batch_size, 1, 1),
    pad=0,
    shard=(0, 1),
  )
  steps = range(batches.num_steps)
  loss = jax.jit(lambda p, b: totals(app.loss(p, b, None, False)))
  outputs, found, sums = jax.jit(app.outputs), [], {}
  for step in steps:
    batch = batches.batch_at(step)
    for values in loss(params, batch):
      for name, pair in values.items():
        sums[name] = sums.get(name, 0) + np.array(pair, np.float64)
    found.append(jax.device_get(outputs(params, batch)))
  return sums, predict.by_row(list(map(batches.row_ids, steps)), found)


def check_close(found, expected):
  """Compares predictions: numbers to 1e-4, all else exactly."""
  if isinstance(expected, dict):
    assert set(found) == set(expected)
    found, expected = ([x[k] for k in sorted(x)] for x in (found, expected))
  if isinstance(expected, list | tuple):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
      check_close(a, b)
  elif isinstance(expected, float):
    assert found == pytest.approx(expected, abs=1.1e-3)
  else:
    assert found == expected
