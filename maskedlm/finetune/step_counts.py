"""Counts the steps of epochs: config.train of fine-tuning, as the loop has it.

config.json has the counts too, for `status` and others.
"""

import math

from maskedlm.core import options
from maskedlm.finetune.options import EpochOptions
from maskedlm.training.options import StepOptions, TrainOptions

COUNTS = ("num_steps", "eval_every", "checkpoint_every")


def in_steps(train: EpochOptions, steps_per_epoch: int) -> StepOptions:
  """Returns config.train as the loop reads it: epochs are steps."""
  num_steps = max(math.ceil(train.epochs * steps_per_epoch), 1)
  every = max(math.floor(steps_per_epoch / train.evals_per_epoch), 1)
  every = min(every, num_steps)
  return StepOptions(
    **vars(options.from_config(TrainOptions, train)),
    num_steps=num_steps,
    eval_every=every,
    checkpoint_every=every,
  )
