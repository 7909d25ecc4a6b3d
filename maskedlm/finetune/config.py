"""Builds the config of fine-tuning from its options, and checks it.

A config file (configs/glue.py, ...) starts from `default(task)` and sets what
differs.
"""

import dataclasses
import importlib
import os
import pathlib
import types
from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict

from maskedlm.config import presets
from maskedlm.core import options, own_file, removed
from maskedlm.core.errors import ConfigError, check_name
from maskedlm.finetune.contract import FinetuneTask
from maskedlm.finetune.options import (
  SWEPT,
  DataOptions,
  EpochOptions,
  FinetuneConfig,
  ModelOptions,
  RunOptions,
  SweepOptions,
)
from maskedlm.training.optimizer_options import OptimizerOptions
from maskedlm.training.options import MeshOptions

# Section -> its options; "" is the top level. config.task comes from the task.
SECTIONS: Mapping[str, type] = {
  "": RunOptions,
  "data": DataOptions,
  "model": ModelOptions,
  "optimizer": OptimizerOptions,
  "train": EpochOptions,
  "sweep": SweepOptions,
  "mesh": MeshOptions,
}
# Tasks that are another way of doing one with a folder.
_MODES = {
  "features": "tagging.features",
  "multi_label": "classification.multi_label",
  "similarity": "retrieval.similarity",
  "splade": "retrieval.splade",
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

  >>> default("tagging").train.epochs
  3.0
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
  config.optimizer.warmup_steps = 0.1  # A share of the steps.
  return config.lock()  # A misspelt option in a config file is an error.


def typed(config: ConfigDict) -> FinetuneConfig:
  """Returns a validated config as dataclasses."""
  task = options.named(load_task(config.task.kind).Options, "kind")
  return options.typed(FinetuneConfig, config, {**SECTIONS, "task": task})


def validate(config: ConfigDict | FinetuneConfig) -> None:
  """Checks every option, and combinations of options across sections.

  Raises:
    ConfigError: an option is out of range, or options contradict each other.
  """
  for name, section in SECTIONS.items():
    values = getattr(config, name) if name else config
    options.check_options(name, section, values)
  if not config.suite:
    options.check_options(
      "task", load_task(config.task.kind).Options, config.task
    )


def unused_options(config: FinetuneConfig) -> dict[str, str]:
  """Returns {option: "with OTHER=VALUE"} of the options without an effect."""
  reasons = options.unused(config, sections(config))
  for name, swept in SWEPT.items():
    if values := getattr(config.sweep, name):
      reasons[swept] = f"with sweep.{name}={values!r}"
  return reasons


def sections(config: ConfigDict | FinetuneConfig) -> dict[str, type]:
  """Returns the options dataclass of each section of a config."""
  return {**SECTIONS, "task": load_task(config.task.kind).Options}


def frozen_options(config: FinetuneConfig) -> frozenset[str]:
  """Returns the names of the options that a resumed run must keep."""
  return options.all_frozen(sections(config)) | {"task.kind"}


def load_task(name: str) -> types.ModuleType:
  """Returns the module maskedlm.finetune.NAME.NAME, or that of a file NAME.

  Raises:
    ConfigError: there is no such task.
  """
  if name in _REMOVED:
    raise ConfigError(f"task.kind={name!r}: {_REMOVED[name]}")
  module = own_file.load(
    "task.kind", name, task_names(), has=("Options", "make_task")
  )
  path = _MODES.get(name, f"{name}.{name}")
  return module or importlib.import_module(f"maskedlm.finetune.{path}")


def make_task(kind: str, values: Mapping[str, Any]) -> FinetuneTask:
  """Returns a task with these options; the others have their defaults.

  Args:
    kind: the task's name, or the file of one's own.
    values: option -> value; a list becomes a tuple. A removed option is
      accepted if it has its default.

  Raises:
    ConfigError: there is no such task or option, a value is out of range, or
      options don't go together.

  >>> make_task("tagging", {"task": "pos"}).options.scheme
  'bio'
  """
  module = load_task(kind)
  known = [field.name for field in dataclasses.fields(module.Options)]
  values = {
    name: value
    for name, value in removed.renewed_task(kind, values).items()
    if name in known or not removed.is_removed(f"task.{name}", value)
  }
  for name in values:
    check_name("task", name, known)
  task_options = module.Options(
    **{n: tuple(x) if isinstance(x, list) else x for n, x in values.items()}
  )
  options.check_options("task", module.Options, task_options)
  return module.make_task(task_options)


def task_of(config: FinetuneConfig) -> FinetuneTask:
  """Returns the task of a config, as make_task does."""
  values = dataclasses.asdict(config.task)
  return make_task(values.pop("kind"), values)


def task_names() -> list[str]:
  """Returns the names of all tasks: folders with a file of their name."""
  files = pathlib.Path(__file__).parent.glob("*/*.py")
  return sorted([*_MODES, *(p.stem for p in files if p.stem == p.parent.name)])


def data_dir() -> str:
  """Returns the folder of labelled data: MASKEDLM_DATA, or ../shared/data."""
  return os.environ.get("MASKEDLM_DATA", "../shared/data")
