"""Pretraining objectives: one module each, found by its name.

Each has its `Options`, a frozen dataclass (core/options.py) of what stands in
config.objective beside the name, and builds its Task (core/task.py) by
make_task(config, corpus, shard, options):

  config: the whole config;
  corpus: data.corpus.store.Corpus;
  shard: (index, count) of the equal part of each batch that this host reads.

It raises ConfigError for an option that is wrong, before anything is computed,
and CorpusError for a corpus that lacks what its rows are made of.
"""

import importlib
import pkgutil
from collections.abc import Callable

from ml_collections import ConfigDict

from maskedlm.core.errors import check_name
from maskedlm.core.task import Task
from maskedlm.objectives import auto_pack


def names() -> list[str]:
  """Returns the names of all objectives: the modules of this folder."""
  modules = pkgutil.iter_modules(__path__)
  return sorted({module.name for module in modules} - {"auto_pack"})


def load(name: str):
  """Returns the module maskedlm.objectives.<name>.

  Raises:
    ConfigError: there is no such objective.
  """
  check_name("objective.name", name, names())
  return importlib.import_module(f"maskedlm.objectives.{name}")


def make(config, corpus, shard: tuple[int, int] = (0, 1)) -> Task:
  """Builds the Task of config.objective.

  Args:
    config: the whole config.
    corpus: data.corpus.store.Corpus.
    shard: (index, count) of the equal part of each batch that this host reads;
      by default all of it.

  Raises:
    ConfigError, CorpusError: as above.
  """
  return _make(resolve_packing(config, corpus), corpus, shard)


def resolve_packing(
  config: ConfigDict, corpus, *, log: Callable = lambda line: None
) -> ConfigDict:
  """Returns the config with objective.pack decided (see auto_pack.resolve)."""

  def rows_per_epoch(config: ConfigDict) -> tuple[int, ...]:
    return _make(config, corpus, (0, 1)).rows_per_epoch

  return auto_pack.resolve(config, rows_per_epoch, log=log)


def _make(config: ConfigDict, corpus, shard: tuple[int, int]) -> Task:
  values = config.objective.to_dict()
  objective = load(values.pop("name"))
  options = objective.Options(**values)
  return objective.make_task(config, corpus, shard, options)
