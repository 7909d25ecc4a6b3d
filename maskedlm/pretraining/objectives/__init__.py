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
import re
from collections.abc import Callable, Sequence
from typing import Any

from ml_collections import ConfigDict

from maskedlm.core import own_file
from maskedlm.core.errors import ConfigError
from maskedlm.core.options import check_options, from_config, to_config
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
  module = own_file.load(
    "objective.name", name, names(), has=["make_task", "Options"]
  )
  return module or importlib.import_module(
    f"maskedlm.pretraining.objectives.{name}"
  )


def default_section(name: str) -> ConfigDict:
  """Returns the default config.objective of an objective.

  Raises:
    ConfigError: there is no such objective.
  """
  section = ConfigDict({"name": name})
  section.update(to_config(load_objective(name).Options))
  return section


def switched(old: ConfigDict, name: str) -> ConfigDict:
  """Returns the config.objective of an objective in place of another's.

  Options that both have, and that differ from the other's default, are kept.

  Raises:
    ConfigError: there is no such objective.
  """
  if name == old.name:
    return old
  new = default_section(name)
  for option, value in changed_options(old).items():
    if option in new:
      new[option] = value
  return new


def changed_options(section: ConfigDict) -> dict[str, Any]:
  """Returns the options of a config.objective that are not its defaults."""
  usual = default_section(section.name)
  return {n: x for n, x in section.items() if x != usual[n]}


def make_task(config: Any, corpus, shard: tuple[int, int] = (0, 1)) -> Task:
  """Returns the Task of config.objective; by default it reads whole batches.

  Raises:
    ConfigError, CorpusError: see the module's docstring.
  """
  objective, options = _objective(config)
  if getattr(options, "pack", False) is None:
    pack = packs([(config, corpus)])
    options = dataclasses.replace(options, pack=pack)

  def make(config) -> Task:
    return objective.make_task(config, corpus, shard, options)

  try:
    if not config.teacher:
      return make(config)
    from maskedlm.pretraining import teacher  # Only now, as it imports jax.

    return teacher.add(make, config, corpus)
  except (AttributeError, TypeError) as error:
    if not re.search(r"'(\w+Config|\w*Options)' object", str(error)):
      raise
    raise ConfigError(
      f"objective.name={config.objective.name!r}: {error}: a config is frozen "
      "dataclasses, whose fields are read by name, such as config.data.length."
    ) from error


def make_batches(config: Any, corpus, *, pack: bool) -> Batches:
  """Returns the batches of config.objective, packed or not, without a Task."""
  objective, options = _objective(config)
  options = dataclasses.replace(options, pack=pack)
  return objective.make_batches(config, corpus, (0, 1), options)


def _objective(config: Any) -> tuple[Any, Any]:
  """Returns the objective's module and its Options."""
  objective = load_objective(config.objective.name)
  options = from_config(objective.Options, config.objective)
  check_options("objective", objective.Options, options)
  return objective, options


def packs(
  parts: Sequence[tuple[Any, Any]],
  *,
  log: Callable[[str], None] = lambda line: None,
) -> bool:
  """Returns whether short texts share rows in a run with objective.pack=None.

  `parts` are the config and corpus of each phase. A line is logged if they do.
  """

  packed, alone = (
    [make_batches(*part, pack=pack).rows_per_epoch for part in parts]
    for pack in (True, False)
  )
  return auto_pack.decide(list(zip(packed, alone, strict=True)), log=log)
