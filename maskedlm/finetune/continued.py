"""Reads the config of a run of fine-tuning, to continue it without its file.

config.json holds the numbers of steps that were computed from shares and
epochs (run._with_steps). They are computed again where the options that they
come from are given or have an effect, so that each option keeps its meaning.
"""

import os
from collections.abc import Collection, Sequence

from ml_collections import ConfigDict

from maskedlm.config import overrides, resumed
from maskedlm.core.errors import ConfigError
from maskedlm.finetune.config import default, validate
from maskedlm.finetune.options import SweepOptions, TrainOptions


def load_config(
  workdir: str | os.PathLike, changes: Sequence[str]
) -> ConfigDict:
  """Returns the config of the run in a workdir, changed by the command line.

  Args:
    workdir: the workdir of a single run, also of one in a sweep or a suite.
    changes: arguments such as "--config.train.epochs=4".

  Raises:
    ConfigError: there is no run of fine-tuning, or a change is wrong or asks
      for several runs.
    StorageError: the address can't be read now.
  """
  config = resumed.load_config(
    workdir,
    kind="fine-tuning",
    default=lambda values: default(values["task"]["kind"]),
  )
  config.sweep.update(vars(SweepOptions()))  # It is one of the sweep's runs.
  given = overrides.given_options(changes)
  for name in given:
    if name.startswith(("suite", "sweep.")):
      raise ConfigError(
        f"--config.{name} asks for several runs, but --workdir={workdir} is "
        "that of one: leave it out, or give --config=FILE and another "
        "--workdir."
      )
  forget_computed(config, given)
  return overrides.change(config, changes, validate, of=str(workdir))


def forget_computed(config: ConfigDict, given: Collection[str]) -> None:
  """Sets numbers of steps to 0 if they follow from other options.

  Args:
    config: the effective config of a run, changed in place.
    given: the options on the command line, such as "train.epochs".
  """
  train, optimizer = config.train, config.optimizer
  if optimizer.warmup_steps == round(train.warmup_share * train.num_steps):
    optimizer.warmup_steps = 0
  if "train.warmup_share" in given:
    optimizer.warmup_steps = 0
  if train.checkpoint_every == train.eval_every:
    train.checkpoint_every = 0
  usual = TrainOptions().evals_per_epoch
  if train.evals_per_epoch != usual or "train.evals_per_epoch" in given:
    train.eval_every = 0
  if "train.epochs" in given:
    train.num_steps = 0
