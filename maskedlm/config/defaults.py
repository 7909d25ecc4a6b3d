"""Builds and checks the config of pretraining, from the options' dataclasses.

A config file (configs/*.py) starts from `default()` and changes values.
"""

import dataclasses

from ml_collections import ConfigDict

from maskedlm.core import options
from maskedlm.core.errors import ConfigError
from maskedlm.pretraining import objectives
from maskedlm.pretraining.config import SECTIONS, PretrainOptions
from maskedlm.training import phases


def default(objective: str = "mlm_nsp") -> ConfigDict:
  """Returns the default config of pretraining with an objective.

  >>> default("roberta").objective.name
  'roberta'
  """
  config = options.to_config(PretrainOptions)
  config.objective = objectives.default_section(objective)
  for name, section in SECTIONS.items():
    if name:
      config[name] = options.to_config(section)
  return config.lock()  # A misspelt option in a config file is an error.


def validate(config: ConfigDict) -> None:
  """Checks every option, and combinations of options of several modules.

  Raises:
    ConfigError: an option is wrong; the first one is named.
  """
  objective = objectives.load_objective(config.objective.name).Options
  names = set(config.objective.keys()) - {"name"}
  known = {field.name for field in dataclasses.fields(objective)}
  if names != known:
    odd = ", ".join(sorted(names ^ known))
    raise ConfigError(
      f"objective.name={config.objective.name!r} doesn't have this config's "
      f"objective options ({odd}); start from a config for this objective, or "
      "switch with --config.objective.name."
    )
  for name, section in SECTIONS.items():
    options.check_options(name, section, config[name] if name else config)
  options.check_options("objective", objective, config.objective)
  if config.grow and not config.init_from:
    raise ConfigError(
      f"grow={config.grow!r} has nothing to start from: name the smaller "
      "model, --config.init_from=RUN, or leave it out."
    )
  if config.continue_from and (config.init_from or config.init_tokens):
    other = "init_from" if config.init_from else "init_tokens"
    raise ConfigError(
      f"continue_from={config.continue_from!r} and {other}="
      f"{config[other]!r}: a run starts from one of them; leave one out."
    )
  if 0 < config.corpus.max_words < config.corpus.min_words:
    raise ConfigError(
      f"corpus.min_words={config.corpus.min_words} is more than corpus."
      f"max_words={config.corpus.max_words}: no document has so many words."
    )
  if config.data.length > config.model.max_positions:
    raise ConfigError(
      f"rows of data.length={config.data.length} tokens don't fit "
      f"model.max_positions={config.model.max_positions}"
      + (
        ", which are init_from's: set --config.data.length to that or less."
        if config.init_from
        else "; raise it or shorten the rows."
      )
    )
  if config.phases:
    for phase in phases.split(config, objectives.switched):
      try:
        validate(phase.config)
      except ConfigError as error:
        raise ConfigError(
          f"phases, from step {phase.begin:,} on: {error}"
        ) from None


def sections(config: ConfigDict) -> dict[str, type]:
  """Returns the options' dataclass of each section of a config."""
  objective = objectives.load_objective(config.objective.name).Options
  return {**SECTIONS, "objective": objective}


def frozen_options(config: ConfigDict) -> frozenset[str]:
  """Returns the names of the options that a resumed run must keep.

  They determine the parameters, or the rows and masks of a step. The corpus
  and the tokenizer are compared by their contents instead.
  """
  return options.all_frozen(sections(config)) | {"objective.name"}
