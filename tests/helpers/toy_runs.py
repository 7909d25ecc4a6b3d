"""Runs the training loop on the toy task."""

import collections
import json
import struct

import jax
import numpy as np

from maskedlm.config import defaults
from maskedlm.pretraining.config import split
from maskedlm.training import loop, metrics


def make_config(**options):
  c = defaults.default()
  c.optimizer.learning_rate = 0.01
  c.optimizer.warmup_steps = 2
  c.optimizer.no_decay = ()
  c.train.num_steps = 10
  c.train.log_every = 2
  c.train.eval_every = 4
  c.train.checkpoint_every = 3
  c.train.update(options)
  return c


def identity(c):
  return {
    "config": json.loads(c.to_json_best_effort()),
    "corpus": "c" * 64,
    "tokenizer": "t" * 64,
  }


def run(c, task, workdir, mesh, *, others=None):
  """Runs a config's phases, all of the same Task but `others`, by phase."""
  workdir.mkdir(exist_ok=True)
  phases = split(c)
  return loop.run(
    phases,
    [(others or {}).get(i, task) for i in range(len(phases))],
    workdir,
    mesh=mesh,
    identity=identity(c),
    frozen=defaults.frozen_options(c),
    continue_from=c.continue_from,
  )


def killed_at(task, step, *, reads=1):
  """Returns the Task, which is killed as a batch is read for training.

  Args:
    task: a Task.
    step: of its batch.
    reads: at which read of that batch; a run reads the first and the last of a
      phase once before it begins, to know what memory they take.
  """
  read = collections.Counter()

  def batch_at(split, at):
    read[split, at] += 1
    if split == "train" and at == step and read[split, at] == reads:
      raise KeyboardInterrupt
    return task.batch_at(split, at)

  return task._replace(batch_at=batch_at)


def assert_same_end(a, b):
  """Checks that two results are equal to the bit."""
  jax.tree.map(np.testing.assert_array_equal, a.params, b.params)
  assert (a.step, a.heldout) == (b.step, b.heldout)


def logged_lines(workdir):
  """Returns the lines of metrics.jsonl."""
  return [
    json.loads(line)
    for line in (workdir / "metrics.jsonl").read_text().splitlines()
  ]


def board_events(workdir):
  """Returns the events of TensorBoard's only file.

  A record has a size of 8 bytes, 4 bytes, the event, and 4 bytes.
  """
  (file,) = (workdir / "tensorboard").iterdir()
  data, found = file.read_bytes(), []
  while data:
    (size,) = struct.unpack("<Q", data[:8])
    event = metrics.import_tensorboardx().proto.event_pb2.Event()
    found.append(event.FromString(data[12 : 12 + size]))
    data = data[16 + size :]
  return found
