"""Runs the training loop on the toy task."""

import json

from maskedlm.config import defaults
from maskedlm.training import loop


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


def run(c, task, workdir, mesh):
  workdir.mkdir(exist_ok=True)
  return loop.run(
    c,
    task,
    workdir,
    mesh=mesh,
    identity=identity(c),
    frozen=defaults.frozen_options(c),
  )
