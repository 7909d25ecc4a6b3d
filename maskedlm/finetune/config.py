"""Every option of fine-tuning, with its meaning; each default lives here.

A config file (configs/glue.py, ...) starts from `default(kind)` and sets what
differs. The kind's own options, its `Options`, stand in config.task.
"""

import importlib
import os
import pathlib

from ml_collections import ConfigDict

from maskedlm.config import presets
from maskedlm.core.errors import ConfigError, did_you_mean
from maskedlm.training import optimizer


def default(kind: str) -> ConfigDict:
  """The default config of a kind of task (classification, tagging, ...)."""
  config = ConfigDict()
  config.name = kind  # Default workdir: runs/<name>.
  config.seed = 0  # Of the heads, the order of examples and the dropout.
  config.profile = (
    0  # Steps to trace, early in the run (docs/guides/pretrain/profiling.md).
  )
  # A workdir or checkpoint, pretrained or fine-tuned: architecture, tokenizer
  # and encoder come from it.
  config.init_from = ""
  config.pretrained = True  # False: architecture and tokenizer only.
  config.task = ConfigDict(
    {"kind": kind, **load_kind(kind).Options()._asdict()}
  )

  config.data = data = ConfigDict()
  # A labelled file as the kind reads it, several with commas between them, or
  # a glob (docs/guides/finetune/overview.md).
  data.train = ""
  data.dev = ""  # The same; "" = dev_share of the training examples.
  data.dev_share = 0.1
  data.also_score = ()  # Further labelled files, scored at the end.
  # At most this many, 0 = all: the same ones whatever the seed, so that runs
  # compare.
  data.max_train = 0
  data.max_dev = 0
  data.length = 128  # L, tokens of the longest row, specials included.
  # In training several short rows share one of the encoder's, each seeing only
  # itself; False = each is padded to length.
  data.pack = True
  # Held-out rows are padded to the smallest of these that fits, or to length.
  # Each is compiled once. () = quarters of length.
  data.buckets = ()
  data.batch_size = 32  # Rows in a step, over all devices.

  config.model = model = ConfigDict()
  model.dropout = 0.1
  model.attention_dropout = 0.1
  model.dtype = "float32"  # Of activations: float32 | bfloat16.
  model.remat = "none"  # What backward recomputes: none | dots | full.
  model.unroll = True  # Unroll the loop over layers in training.
  model.reinit_layers = 0  # The top layers that start anew.

  config.optimizer = presets.adamw()
  config.optimizer.learning_rate = 3e-5
  config.optimizer.warmup_steps = 0  # Set from warmup_share.

  config.train = train = ConfigDict()
  train.epochs = 3.0  # Or a share of one.
  train.warmup_share = 0.1  # Of the steps.
  train.num_steps = 0  # Instead of epochs; 0 = set from them.
  train.accumulate = 1
  train.log_every = 20  # Steps.
  train.evals_per_epoch = 1  # Each may become the best checkpoint.
  train.eval_every = 0  # Set from evals_per_epoch.
  train.checkpoint_every = 0  # The same.
  train.keep_last = 1
  train.keep_best = 1  # By the kind's metric on the development set.
  train.nonfinite_limit = 10
  train.prefetch = 4

  # A grid of runs in one command; an empty tuple leaves the option as it is.
  config.sweep = sweep = ConfigDict()
  sweep.learning_rate = ()
  sweep.batch_size = ()
  sweep.epochs = ()
  sweep.seeds = ()
  # Variants of this config file to run one after the other (configs/glue.py).
  config.suite = ()
  config.suite_without = ()  # Those that can't be; named beside the average.

  config.mesh = mesh = ConfigDict()
  mesh.data = -1  # Data parallel; -1 = the devices that remain.
  mesh.fsdp = 1
  mesh.tensor = 1
  return config.lock()


def validate(config: ConfigDict) -> None:
  """Checks what would otherwise fail late or oddly.

  Raises:
    ConfigError: naming the option, its value and what is expected.
  """
  check_ranges(config, _RANGES)
  _check_steps(config)
  optimizer.check_values(config.optimizer)
  if not config.suite:
    load_kind(config.task.kind)


def _check_steps(config: ConfigDict) -> None:
  """How long a run is must be told, and told once."""
  epochs, steps = tuple(config.sweep.epochs), config.train.num_steps
  if steps and epochs:
    raise ConfigError(
      f"train.num_steps={steps} is the length of every run, so "
      f"sweep.epochs={epochs} would do nothing: leave out one of them."
    )
  name = "sweep.epochs" if epochs else "train.epochs"
  least = min(epochs or (config.train.epochs,))
  if not steps and least <= 0:
    raise ConfigError(
      f"{name}={least}: expected more than 0; or set train.num_steps."
    )


_ANY = float("inf")
_RANGES = (
  ("seed", 0, 2**32 - 1),  # JAX's keys have no more bits of it.
  ("profile", 0, _ANY),
  ("data.dev_share", 0.0, 0.9),
  ("data.max_train", 0, _ANY),
  ("data.max_dev", 0, _ANY),
  ("data.length", 8, _ANY),
  ("data.batch_size", 1, _ANY),
  ("model.dropout", 0.0, 0.9),
  ("model.attention_dropout", 0.0, 0.9),
  ("train.epochs", 0, _ANY),
  ("train.warmup_share", 0.0, 1.0),
  ("train.num_steps", 0, _ANY),
  ("train.accumulate", 1, _ANY),
  ("train.log_every", 1, _ANY),
  ("train.evals_per_epoch", 1, _ANY),
  ("train.eval_every", 0, _ANY),
  ("train.checkpoint_every", 0, _ANY),
  ("train.keep_last", 1, _ANY),
  ("train.keep_best", 1, _ANY),
  ("train.nonfinite_limit", 1, _ANY),
  ("train.prefetch", 1, _ANY),
)


def frozen_options(config: ConfigDict) -> frozenset[str]:
  """Returns the names of the options that a resumed run must keep."""
  sections = ("task", "data")
  names = {"seed", "init_from", "pretrained", "model.reinit_layers"}
  names |= {"optimizer.rule"}
  names |= {f"{section}.{n}" for section in sections for n in config[section]}
  return frozenset(names - {"data.also_score"})


def check_ranges(config: ConfigDict, ranges) -> None:
  """Raises ConfigError for an option outside of its (name, lowest, highest)."""
  for name, low, high in ranges:
    section, _, key = name.rpartition(".")
    value = config[section][key] if section else config[key]
    if not low <= value <= high:
      most = "or more" if high == _ANY else f"to {high}"
      raise ConfigError(
        f"{name}={value} is out of range: expected {low} {most}."
      )


def load_kind(name: str):
  """Returns the module of a task, maskedlm.finetune.<name>.<name>.

  Raises:
    ConfigError: there is no such task.
  """
  if name not in task_names():
    raise ConfigError(
      f"kind {name!r} is not a kind of fine-tuning"
      f"{did_you_mean(name, task_names())}; known: {', '.join(task_names())}."
    )
  return importlib.import_module(f"maskedlm.finetune.{name}.{name}")


def task_names() -> list[str]:
  """Returns the names of all tasks: the folders with a file of their name."""
  folder = pathlib.Path(__file__).parent
  return sorted(
    p.stem for p in folder.glob("*/*.py") if p.stem == p.parent.name
  )


def data_dir() -> str:
  """The folder of labelled data: MASKEDLM_DATA, or ../shared/data."""
  return os.environ.get("MASKEDLM_DATA", "../shared/data")
