"""`maskedlm.train` and `maskedlm.load`: training and its results in Python."""

import os
import pathlib
from typing import Any

from ml_collections import ConfigDict

from maskedlm.config import defaults, existing, overrides
from maskedlm.core.errors import StoppedError
from maskedlm.finetune import start as finetuning
from maskedlm.inference import model
from maskedlm.inference.model import Model
from maskedlm.interop.huggingface import hub
from maskedlm.pretraining import start as pretraining
from maskedlm.pretraining.initial import init_from
from maskedlm.runtime import buckets, output_files


def train(
  config: ConfigDict | str, workdir: str | os.PathLike
) -> dict[str, Any]:
  """Pretrains or fine-tunes in a workdir; called again, it continues there.

  Args:
    config: of maskedlm.config.default() or, to fine-tune,
      maskedlm.finetune.config.default(task); or a config file such as
      "configs/bert.py:tiny". It is not changed.
    workdir: the folder of the run, or gs://...

  Returns:
    The content of result.json.

  Raises:
    ConfigError, CorpusError, DataError, CheckpointError: an option, the text,
      the labelled data or the workdir can't be used.
    StoppedError: Ctrl-C; the step is saved, and the same call continues.
  """
  if isinstance(config, str):
    config = overrides.load_config(config, validate=lambda config: None)
  config = config.copy_and_resolve_references()
  config.init_from = hub.pin(config.init_from, workdir)
  if "task" in config:
    return finetuning.finetune(config, workdir)
  place = buckets.origin(workdir)
  init_from.copy_architecture(config, given=())
  existing.fit_to_tokenizer(config, (), started=place.exists)
  existing.fit_to_corpus(config, (), started=place.exists)
  defaults.validate(config)
  if not run_pretraining(config, workdir):
    raise StoppedError("interrupted, and saved: the same call continues")
  return output_files.read_result(place)


def load(path: str | pathlib.Path, *, length: int = 0) -> Model:
  """Returns inference.model.load's Model, also of a name; see hub.pin."""
  return model.load(hub.pin(os.fspath(path)), length=length)


def run_pretraining(config: ConfigDict, workdir: str | os.PathLike) -> bool:
  """Pretrains with a validated config; returns False if interrupted."""

  def show_examples(workdir, corpus) -> None:
    from maskedlm.inference import masked_examples  # It imports jax.

    masked_examples.print_filled(workdir, corpus)

  return pretraining.pretrain(
    config,
    workdir,
    frozen=defaults.frozen_options(config),
    show_examples=show_examples,
  )
