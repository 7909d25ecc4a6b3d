"""Builds the config of fine-tuning from its options, and checks it.

A config file (configs/glue.py, ...) starts from `default(task)` and sets what
differs.
"""

import dataclasses
import importlib
import itertools
import os
import pathlib
import types
from collections.abc import Collection, Mapping
from typing import Any

from ml_collections import ConfigDict

from maskedlm.config import presets
from maskedlm.core import options, own_file, removed
from maskedlm.core.errors import ConfigError, check_name
from maskedlm.finetune.contract import FinetuneTask
from maskedlm.finetune.options import (
  DataOptions,
  ModelOptions,
  RunOptions,
  SweepOptions,
  TrainOptions,
)
from maskedlm.training import optimizer
from maskedlm.training.optimizer_options import OptimizerOptions
from maskedlm.training.options import MeshOptions

# Section -> its options; "" is the top level. config.task comes from the task.
SECTIONS: Mapping[str, type] = {
  "": RunOptions,
  "data": DataOptions,
  "model": ModelOptions,
  "optimizer": OptimizerOptions,
  "train": TrainOptions,
  "sweep": SweepOptions,
  "mesh": MeshOptions,
}
# Tasks that are another way of doing one with a folder.
_MODES = {
  "features": "tagging.features",
  "multi_label": "classification.multi_label",
  "text_features": "classification.features",
}
# Tasks of earlier versions -> what there is instead.
_REMOVED = {
  "coreference": "GAP's task is gone; coreference_chains finds what pronouns "
  "refer to, in documents of CoNLL-2012 or JSON.",
}


def default(task: str) -> ConfigDict:
  """Returns the default config of a task (classification, tagging, ...).

  Raises:
    ConfigError: there is no such task.
  """
  config = options.to_config(RunOptions)
  config.name = pathlib.Path(task).stem
  config.task = ConfigDict({"kind": task})
  config.task.update(options.to_config(load_task(task).Options))
  for name, section in SECTIONS.items():
    if name:
      config[name] = options.to_config(section)
  config.optimizer = presets.adamw()
  config.optimizer.learning_rate = 3e-5
  config.optimizer.warmup_steps = 0  # Set from train.warmup_share.
  return config.lock()  # A misspelt option in a config file is an error.


def validate(config: ConfigDict) -> None:
  """Checks every option, and combinations of options across sections.

  Raises:
    ConfigError: an option is out of range, or options contradict each other.
  """
  for name, section in SECTIONS.items():
    if name not in ("optimizer", "mesh"):
      options.check_options(name, section, config[name] if name else config)
  _check_steps(config)
  optimizer.check_values(config.optimizer)
  if not config.suite:
    options.check_options(
      "task", load_task(config.task.kind).Options, config.task
    )


def contradictions(config: ConfigDict, given: Collection[str]) -> list[str]:
  """Returns a message for each given option that has no effect.

  Args:
    config: the whole config, validated.
    given: the options on the command line, such as "data.dev_share". Values of
      a config file may be without effect, since it is shared by several runs.
  """
  steps, every = config.optimizer.warmup_steps, config.train.eval_every
  from_scratch = not config.pretrained and "beside pretrained=False"
  reasons: dict[str, Any] = {
    "data.dev_share": config.data.dev and "beside data.dev",
    "train.warmup_share": steps and f"beside optimizer.warmup_steps={steps}",
    "train.evals_per_epoch": every and f"beside train.eval_every={every}",
    "model.reinit_layers": from_scratch,
    "model.fresh_head": from_scratch,
  }
  if not config.suite:
    unused = task_of(config).without_effect
    reasons |= {f"task.{name}": reason for name, reason in unused.items()}
  messages = []
  for name in given:
    section, _, option = name.partition(".")
    if reason := reasons.get(name):
      value = config[section][option]
      if value != getattr(sections(config)[section], option):  # The default.
        messages.append(f"{name}={value!r} has no effect {reason}")
  return messages


def unused_options(config: ConfigDict) -> dict[str, str]:
  """Returns {option: "with OTHER=VALUE"}: others decide instead of these.

  Args:
    config: the whole config, validated.
  """
  grid, share = config.sweep, config.train.warmup_share
  by_share = not config.optimizer.warmup_steps  # 0 follows train.warmup_share.
  reasons = options.unused(config, sections(config))
  for name, other, holds in (
    ("optimizer.learning_rate", "sweep.learning_rate", grid.learning_rate),
    ("data.batch_size", "sweep.batch_size", grid.batch_size),
    ("train.epochs", "sweep.epochs", grid.epochs),
    ("seed", "sweep.seeds", grid.seeds),
    ("train.epochs", "train.num_steps", config.train.num_steps),
    ("suite_without", "suite", not config.suite),
    ("optimizer.warmup_steps", "train.warmup_share", by_share and share > 0),
    ("optimizer.start_factor", "train.warmup_share", by_share and not share),
  ):
    if holds:
      section, _, key = other.rpartition(".")
      value = (config[section] if section else config)[key]
      reasons[name] = f"with {other}={value!r}"
  return reasons


def _check_steps(config: ConfigDict) -> None:
  """Raises ConfigError unless exactly one option sets the length of a run."""
  epochs, steps = tuple(config.sweep.epochs), config.train.num_steps
  if steps and epochs:
    raise ConfigError(
      f"train.num_steps={steps} is the length of every run, so "
      f"sweep.epochs={epochs} would have no effect: leave out one of them."
    )
  name = "sweep.epochs" if epochs else "train.epochs"
  least = min(epochs or (config.train.epochs,))
  if not steps and least <= 0:
    raise ConfigError(
      f"{name}={least}: expected more than 0; or set train.num_steps."
    )


def sections(config: ConfigDict) -> dict[str, type]:
  """Returns the options dataclass of each section of a config."""
  return {**SECTIONS, "task": load_task(config.task.kind).Options}


def frozen_options(config: ConfigDict) -> frozenset[str]:
  """Returns the names of the options that a resumed run must keep."""
  names = [options.frozen(*section) for section in sections(config).items()]
  return frozenset(["task.kind", *itertools.chain.from_iterable(names)])


def load_task(name: str) -> types.ModuleType:
  """Returns the module maskedlm.finetune.NAME.NAME, or that of a file NAME.

  Raises:
    ConfigError: there is no such task.
  """
  if name in _REMOVED:
    raise ConfigError(f"task.kind={name!r}: {_REMOVED[name]}")
  own = own_file.load(
    "task.kind", name, task_names(), has=("Options", "make_task")
  )
  path = _MODES.get(name, f"{name}.{name}")
  return own or importlib.import_module(f"maskedlm.finetune.{path}")


def make_task(kind: str, values: Mapping[str, Any]) -> FinetuneTask:
  """Returns a task with these options; the others have their defaults.

  Args:
    kind: its name, or a file's.
    values: option -> value; a list becomes a tuple. An option of an earlier
      version may be there with its default.

  Raises:
    ConfigError: there is no such task or option, a value is out of range, or
      options don't go together.
  """
  module = load_task(kind)
  known = [field.name for field in dataclasses.fields(module.Options)]
  values = {
    name: value
    for name, value in values.items()
    if name in known or not removed.is_removed(f"task.{name}", value)
  }
  for name in values:
    check_name("task", name, known)
  task_options = module.Options(
    **{n: tuple(x) if isinstance(x, list) else x for n, x in values.items()}
  )
  options.check_options("task", module.Options, task_options)
  return module.make_task(task_options)


def task_of(config: ConfigDict) -> FinetuneTask:
  """Returns the task of a config, as make_task does."""
  values = config.task.to_dict()
  return make_task(values.pop("kind"), values)


def task_names() -> list[str]:
  """Returns the names of all tasks: folders with a file of their name."""
  files = pathlib.Path(__file__).parent.glob("*/*.py")
  return sorted([*_MODES, *(p.stem for p in files if p.stem == p.parent.name)])


def data_dir() -> str:
  """Returns the folder of labelled data: MASKEDLM_DATA, or ../shared/data."""
  return os.environ.get("MASKEDLM_DATA", "../shared/data")
