"""The options that all tasks of fine-tuning share: default, meaning, range.

A task's own options, config.task, are in its folder; config.optimizer is in
training/optimizer_options.py, config.mesh in training/options.py.
"""

import dataclasses
import math
from typing import Any

from maskedlm.core.options import (
  changed_default,
  copy_option,
  from_config,
  frozen_option,
  option,
)
from maskedlm.data import options as of_rows
from maskedlm.modeling import model_options
from maskedlm.training import options as of_training
from maskedlm.training.optimizer_options import OptimizerOptions

_DATA, _TRAIN = of_rows.DataOptions, of_training.TrainOptions
_MODEL = model_options.ModelOptions


@dataclasses.dataclass(frozen=True)
class RunOptions(of_training.RunOptions):
  """The top level of the config."""

  init_from: str = frozen_option(
    "",
    "A workdir or checkpoint, pretrained or fine-tuned, or hf:NAME on the "
    "Hugging Face Hub: its architecture, tokenizer and encoder, and its head "
    "if task and labels are the same.",
  )
  pretrained: bool = frozen_option(
    True,
    "False takes the architecture and the tokenizer only, and trains from "
    "scratch.",
  )
  suite: tuple[str, ...] = option(
    (),
    "Variants of this config file to run one after the other, as in "
    "configs/glue.py.",
  )
  suite_without: tuple[str, ...] = option(
    (),
    "Variants that can't be run; listed beside the average.",
    needs={"suite": True},
  )


@dataclasses.dataclass(frozen=True)
class DataOptions:
  """config.data: the labelled files, and the rows of a step."""

  train: str = frozen_option(
    "",
    "A labelled file, several with commas between them, or a glob "
    "(docs/guides/finetune/overview.md).",
  )
  dev: str = frozen_option(
    "",
    "The same for the development set; '' for dev_share of the training "
    "examples.",
  )
  skip_bad: bool = frozen_option(
    False,
    "Rows and sentences of train and dev that break their format are left out, "
    "and counted; False refuses the first.",
  )
  dev_share: float = frozen_option(
    0.1,
    "Share of the training examples.",
    low=0.0,
    high=0.9,
    needs={"data.dev": False},
  )
  also_score: tuple[str, ...] = option(
    (), "Further labelled files, scored at the end."
  )
  max_train: int = frozen_option(
    0,
    "Training examples, at most; 0 for all. The same ones whatever the seed.",
    low=0,
  )
  max_dev: int = frozen_option(
    0, "Development examples, at most; 0 for all.", low=0
  )
  length: int = copy_option(_DATA, "length")
  pack: bool = frozen_option(
    True,
    "In training, several short examples share one row of the encoder, each "
    "attending to itself only, as at inference; False pads each to length.",
  )
  batch_size: int = changed_default(_DATA, "batch_size", 32)


@dataclasses.dataclass(frozen=True)
class ModelOptions:
  """config.model: what may differ from the checkpoint's architecture."""

  dropout: float = copy_option(_MODEL, "dropout")
  attention_dropout: float = copy_option(_MODEL, "attention_dropout")
  dtype: str = copy_option(_MODEL, "dtype")
  remat: str = copy_option(_MODEL, "remat")
  unroll: bool = copy_option(_MODEL, "unroll")
  reinit_layers: int = frozen_option(
    0,
    "The top layers that start from random parameters.",
    needs={"pretrained": True},
  )
  fresh_head: bool = frozen_option(
    False,
    "Start the head from random parameters even if init_from was fine-tuned on "
    "the same task with the same labels.",
    needs={"pretrained": True},
  )


@dataclasses.dataclass(frozen=True)
class EpochOptions(of_training.TrainOptions):
  """config.train: how long, and what is logged, evaluated and saved."""

  epochs: float = option(
    3.0, "Passes over the training set.", above=0, high=1_000_000
  )
  evals_per_epoch: float = option(
    1.0,
    "Evaluations, each of which is saved and may become the best checkpoint; "
    "0.1 for one in ten epochs.",
    above=0,
    high=1_000_000,
  )
  log_every: int = changed_default(_TRAIN, "log_every", 20)
  keep_last: int = changed_default(_TRAIN, "keep_last", 1)
  keep_best: int = option(
    1,
    "Best checkpoints kept, by the task's metric on the development set.",
    low=1,
  )

  def in_steps(self, steps_per_epoch: int) -> of_training.StepOptions:
    """Returns config.train as the loop reads it: epochs are steps."""
    num_steps = max(math.ceil(self.epochs * steps_per_epoch), 1)
    every = max(math.floor(steps_per_epoch / self.evals_per_epoch), 1)
    every = min(every, num_steps)
    return of_training.StepOptions(
      **vars(from_config(of_training.TrainOptions, self)),
      num_steps=num_steps,
      eval_every=every,
      checkpoint_every=every,
    )


# config.json has these of StepOptions too, for `status` and others.
COUNTS = ("num_steps", "eval_every", "checkpoint_every")


@dataclasses.dataclass(frozen=True)
class SweepOptions:
  """config.sweep: a grid of runs; an empty tuple leaves the option alone."""

  learning_rate: tuple[float, ...] = option((), "optimizer.learning_rate.")
  batch_size: tuple[int, ...] = option((), "data.batch_size.")
  epochs: tuple[float, ...] = option((), "train.epochs.")
  seeds: tuple[int, ...] = option((), "seed.")


# Option of config.sweep -> the option of a run that it sets.
SWEPT = {
  "learning_rate": "optimizer.learning_rate",
  "batch_size": "data.batch_size",
  "epochs": "train.epochs",
  "seeds": "seed",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuneConfig(RunOptions):
  """The config of fine-tuning as dataclasses, as config.typed makes it."""

  data: DataOptions
  model: ModelOptions
  optimizer: OptimizerOptions
  train: Any  # EpochOptions; StepOptions for the loop.
  sweep: SweepOptions
  mesh: of_training.MeshOptions
  task: Any  # The Options of the task, and its kind.
