"""Pretraining objectives: one module each, found by its name or its path.

Each has `Options`, a frozen dataclass (core/options.py) with the fields of
config.objective other than the name, and builds its Task (core/task.py) with

  make_task(config, corpus, shard, options)

  config: the whole config;
  corpus: data.corpus.store.Corpus;
  shard: (index, count) of the equal part of each batch that this host reads;
  options: Options.

make_task raises ConfigError for a wrong option, before anything is computed,
and CorpusError for a corpus that lacks the text its rows are made of. If rows
can be packed, `make_batches` takes the same arguments and returns only the
batches, so that auto_pack.py can count their rows.
"""

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any

from ml_collections import ConfigDict

from maskedlm.core import own_file
from maskedlm.core.options import check_options
from maskedlm.core.task import Task
from maskedlm.data.batches.batching import Batches
from maskedlm.pretraining import auto_pack


def names() -> list[str]:
  """Returns the names of all objectives: the modules of this folder."""
  modules = pkgutil.iter_modules(__path__)
  return sorted(module.name for module in modules)


def load_objective(name: str):
  """Returns the module of an objective here, or that of a file NAME.py.

  Raises:
    ConfigError: there is no such objective.
  """
  own = own_file.load(
    "objective.name", name, names(), has=["make_task", "Options"]
  )
  return own or importlib.import_module(
    f"maskedlm.pretraining.objectives.{name}"
  )


def make_task(
  config: ConfigDict, corpus, shard: tuple[int, int] = (0, 1)
) -> Task:
  """Returns the Task of config.objective.

  Args:
    config: the whole config.
    corpus: data.corpus.store.Corpus.
    shard: (index, count) of the equal part of each batch that this host reads;
      by default all of it.

  Raises:
    ConfigError, CorpusError: see the module's docstring.
  """
  objective, options = _objective(config)
  if getattr(options, "pack", False) is None:
    pack = _packs([(config, corpus)])
    options = dataclasses.replace(options, pack=pack)
  return objective.make_task(config, corpus, shard, options)


def resolve_packing(
  config: ConfigDict,
  parts: Sequence[tuple[ConfigDict, Any]],
  *,
  log: Callable[[str], None] = lambda line: None,
) -> None:
  """Sets objective.pack of a config where it is None (auto_pack.decide).

  Args:
    config: the whole config, changed in place.
    parts: config and corpus of each phase of the run.
    log: called with one line if rows are packed.

  Raises:
    ConfigError, CorpusError: see the module's docstring.
  """
  if "pack" in config.objective and config.objective.pack is None:
    config.objective.pack = _packs(parts, log)


def make_batches(config: ConfigDict, corpus, *, pack: bool) -> Batches:
  """Returns the batches of config.objective, packed or not, without its Task.

  Raises:
    ConfigError, CorpusError: see the module's docstring.
  """
  objective, options = _objective(config)
  options = dataclasses.replace(options, pack=pack)
  return objective.make_batches(config, corpus, (0, 1), options)


def _objective(config: ConfigDict) -> tuple[Any, Any]:
  """Returns the objective's module and its Options."""
  values = config.objective.to_dict()
  objective = load_objective(values.pop("name"))
  options = objective.Options(**values)
  check_options("objective", objective.Options, options)
  return objective, options


def _packs(parts, log: Callable = lambda line: None) -> bool:
  """Returns whether the rows of a run whose objective.pack is None share."""

  def rows_per_epoch(pack: bool) -> list[int]:
    return [
      make_batches(config, corpus, pack=pack).rows_per_epoch
      for config, corpus in parts
    ]

  return auto_pack.decide(rows_per_epoch, log=log)
