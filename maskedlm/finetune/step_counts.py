"""Numbers of steps that follow from epochs and shares: set them, forget them.

A run writes them into config.json. When it is continued without its config
file, they are computed again where the options that they come from are given or
have an effect, so that each option keeps its meaning.
"""

import math
from collections.abc import Collection

from ml_collections import ConfigDict

from maskedlm.finetune.options import TrainOptions


def with_steps(config: ConfigDict, steps_per_epoch: int) -> ConfigDict:
  """Returns the config with the step counts that the number of rows implies."""
  config = config.copy_and_resolve_references()
  train, optimizer = config.train, config.optimizer
  if not train.num_steps:
    train.num_steps = max(math.ceil(train.epochs * steps_per_epoch), 1)
  optimizer.warmup_steps = optimizer.warmup_steps or _warmup_steps(train)
  every = max(steps_per_epoch // train.evals_per_epoch, 1)
  train.eval_every = train.eval_every or min(every, train.num_steps)
  train.checkpoint_every = train.checkpoint_every or train.eval_every
  return config


def without_steps(config: ConfigDict, given: Collection[str]) -> None:
  """Sets the counts of `with_steps` to 0 where they follow from other options.

  Args:
    config: the effective config of a run, changed in place.
    given: the options on the command line, such as "train.epochs".
  """
  train, optimizer = config.train, config.optimizer
  is_computed = optimizer.warmup_steps == _warmup_steps(train)
  if is_computed or "train.warmup_share" in given:
    optimizer.warmup_steps = 0
  if train.checkpoint_every == train.eval_every:
    train.checkpoint_every = 0
  usual = TrainOptions().evals_per_epoch
  if train.evals_per_epoch != usual or "train.evals_per_epoch" in given:
    train.eval_every = 0
  if "train.epochs" in given:
    train.num_steps = 0


def _warmup_steps(train: ConfigDict) -> int:
  return round(train.warmup_share * train.num_steps)
