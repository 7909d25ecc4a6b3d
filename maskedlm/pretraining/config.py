"""The config of pretraining, behind the door: frozen dataclasses.

Users see an ml_collections ConfigDict (config/), of which `typed` makes a
PretrainConfig. Functions take the section that they read.
"""

import dataclasses
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ml_collections import ConfigDict

from maskedlm.core import options
from maskedlm.core.options import frozen_option
from maskedlm.data.options import DataOptions, TextConfig
from maskedlm.modeling.model_options import ModelOptions
from maskedlm.pretraining import objectives
from maskedlm.training import phases
from maskedlm.training.optimizer_options import OptimizerOptions
from maskedlm.training.options import MeshOptions, RunOptions, StepOptions
from maskedlm.training.phases import Phase


@dataclasses.dataclass(frozen=True)
class PretrainOptions(RunOptions):
  """Options at the top level of a config of pretraining."""

  continue_from: str = frozen_option(
    "",
    "A run, or one of its checkpoints, to continue with other options: its "
    "weights, moments, step, architecture and tokenizer; train.num_steps "
    "counts its steps too.",
  )
  grow: str = frozen_option(
    "",
    "tile: start a larger model from init_from, whose layers and widths are "
    "repeated; pick: a shallower one from layers of it, evenly spaced, the "
    "last among them (grow.py). These sizes are then the config's own.",
    choices=("", "tile", "pick"),
  )
  phases: tuple[dict, ...] = frozen_option(
    (),
    "Parts of the run, each with a length (steps, tokens or share) and changed "
    "options, such as ({}, {'share': 0.1, 'data.length': 512}); () for one.",
  )
  init_tokens: str = frozen_option(
    "",
    "A file of word vectors (word2vec, GloVe) from which the embeddings of "
    "tokens that are whole words start; '' for random ones.",
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainConfig(PretrainOptions, TextConfig):
  """The whole config of pretraining."""

  model: ModelOptions
  data: DataOptions
  optimizer: OptimizerOptions
  train: StepOptions
  mesh: MeshOptions
  objective: Any  # The Options of the objective, and its name.


# Section -> its options; "" is the top level. Those of config.objective are in
# the objective's file.
SECTIONS: Mapping[str, type] = {
  "": PretrainOptions,
  **{
    name: section
    for name, section in typing.get_type_hints(PretrainConfig).items()
    if isinstance(section, type) and dataclasses.is_dataclass(section)
  },
}


def typed(config: ConfigDict) -> PretrainConfig:
  """Returns a validated config as dataclasses."""
  objective = objectives.load_objective(config.objective.name).Options
  sections = {**SECTIONS, "objective": options.named(objective, "name")}
  return options.typed(PretrainConfig, config, sections)


def split(config: ConfigDict) -> list[Phase]:
  """Returns the phases of a run (phases.split), with typed configs."""
  parts = phases.split(config, objectives.switched)
  return [part._replace(config=typed(part.config)) for part in parts]


def decide_packing(
  config: ConfigDict, corpora: Sequence[Any], *, log: Callable[[str], None]
) -> None:
  """Sets objective.pack of a config where it is None (auto_pack.py).

  A line is logged if rows of the corpora, one of each phase, are packed.
  """
  configs = [part.config for part in split(config)]
  if getattr(configs[0].objective, "pack", False) is None:
    parts = [*zip(configs, corpora, strict=True)]
    config.objective.pack = objectives.packs(parts, log=log)
