"""The teacher of pretraining: a model of the same objective."""

from collections.abc import Callable
from typing import Any

from maskedlm.core.errors import ConfigError
from maskedlm.core.options import changed
from maskedlm.core.task import Task
from maskedlm.pretraining.initial import init_from
from maskedlm.training import distil
from maskedlm.training.checkpoints import load


def add(make: Callable[[Any], Task], config: Any, corpus) -> Task:
  """Returns make(config), which learns from config.teacher.

  `make` returns the Task of an objective for a whole config.

  Raises:
    CheckpointError, ConfigError: the teacher can't be read, or doesn't fit.
  """
  described = load.describe_checkpoint(config.teacher)
  length, positions = config.data.length, described.cfg.max_positions
  if length > positions:
    raise ConfigError(
      f"data.length={length} is more than the {positions} positions of "
      f"teacher={config.teacher}; set --config.data.length={positions} or less."
    )
  model = init_from.architecture(described.cfg, vars(config.model))
  teacher_config = changed(
    config, {f"model.{n}": value for n, value in model.items()}
  )
  task, teacher = make(config), make(teacher_config)
  return distil.distil(task, teacher, described, corpus.tokenizer, config)
