"""The config of pretraining: built from the options' dataclasses, and checked.

A config file (configs/*.py) starts from `default()` and sets what differs.
"""

import dataclasses
from collections.abc import Mapping

from ml_collections import ConfigDict

from maskedlm import objectives
from maskedlm.config.options import (
  CorpusOptions,
  DataOptions,
  MeshOptions,
  RunOptions,
  TokenizerOptions,
  TrainOptions,
)
from maskedlm.core import options
from maskedlm.core.errors import ConfigError
from maskedlm.modeling.architecture import ModelOptions
from maskedlm.training.optimizer import OptimizerOptions

# Section -> its options; "" is the top level. config.objective comes from the
# objective's own file.
SECTIONS: Mapping[str, type] = {
  "": RunOptions,
  "corpus": CorpusOptions,
  "tokenizer": TokenizerOptions,
  "model": ModelOptions,
  "data": DataOptions,
  "optimizer": OptimizerOptions,
  "train": TrainOptions,
  "mesh": MeshOptions,
}


def default(objective: str = "mlm_nsp") -> ConfigDict:
  """Returns the default config of an objective, a module of objectives/."""
  config = options.to_config(RunOptions)
  config.objective = objective_section(objective)
  for name, section in SECTIONS.items():
    if name:
      config[name] = options.to_config(section)
  return config.lock()  # A misspelt option in a config file is an error.


def objective_section(name: str) -> ConfigDict:
  """Returns config.objective of an objective, with its defaults."""
  section = ConfigDict({"name": name})
  section.update(options.to_config(objectives.load_objective(name).Options))
  return section


def validate(config: ConfigDict) -> None:
  """Checks every option by itself, and what no single module can see.

  Raises:
    ConfigError: naming the option, its value and what is expected.
  """
  objective = objectives.load_objective(config.objective.name).Options
  given = set(config.objective.keys()) - {"name"}
  known = {field.name for field in dataclasses.fields(objective)}
  if given != known:
    odd = ", ".join(sorted(given ^ known))
    raise ConfigError(
      f"objective.name={config.objective.name!r} doesn't go with this "
      f"config's objective options ({odd}); start from a config written for "
      "it, or switch with --config.objective.name."
    )
  for name, section in SECTIONS.items():
    options.check_options(name, section, config[name] if name else config)
  options.check_options("objective", objective, config.objective)
  longest = config.data.length
  if config.data.long_share > 0:
    longest = max(longest, config.data.long_length)
  if longest > config.model.max_positions:
    raise ConfigError(
      f"rows of {longest} tokens don't fit model.max_positions="
      f"{config.model.max_positions}; raise it or shorten the rows."
    )


def sections(config: ConfigDict) -> dict[str, type]:
  """Returns the options' dataclass of each section of a config."""
  objective = objectives.load_objective(config.objective.name).Options
  return {**SECTIONS, "objective": objective}


def frozen_options(config: ConfigDict) -> frozenset[str]:
  """Returns the names of the options that a resumed run must keep.

  They decide what the parameters are, or which rows and masks a step sees. The
  corpus and the tokenizer are compared by their contents instead.
  """
  names = {"objective.name"}
  for name, section in sections(config).items():
    names.update(options.frozen(name, section))
  return frozenset(names)
