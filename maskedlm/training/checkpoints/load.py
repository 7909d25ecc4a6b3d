"""Opens checkpoints for use: parameters, architecture, tokenizer.

Fine-tuning, prediction, filled masks, embeddings and exports begin here.
"""

import hashlib
import pathlib
from collections.abc import Collection
from typing import NamedTuple

import jax
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params
from maskedlm.data.tokenizers.tokenizer import Tokenizer, load_tokenizer
from maskedlm.modeling.architecture import EncoderConfig, restored
from maskedlm.runtime import buckets
from maskedlm.training.checkpoints import files, manager


class Described(NamedTuple):
  """The kind of model that a checkpoint holds."""

  cfg: EncoderConfig
  tokenizer: Tokenizer
  meta: dict  # As it was saved, with "step", "task", "heldout", ...


class LoadedCheckpoint(NamedTuple):
  """The contents of a checkpoint, and its kind."""

  params: Params  # numpy.
  cfg: EncoderConfig
  tokenizer: Tokenizer
  meta: dict


def describe(path: str | pathlib.Path) -> Described:
  """Opens a workdir's newest checkpoint, or a checkpoint, without arrays.

  It reads its small files alone, and asks JAX for no devices: hosts may be
  connected afterwards.

  Raises:
    CheckpointError, ConfigError: see open_checkpoint.
  """
  path = _existing(path)
  record = files.load_record(path)
  names = [name.split("/") for name in record["arrays"]]
  parts = {rest[0] for first, *rest in names if first == "params"}
  return _described(path, parts, files.meta(record))


def open_checkpoint(
  path: str | pathlib.Path, *, step: int | str | None = None
) -> LoadedCheckpoint:
  """Opens a workdir (its newest checkpoint, or `step`) or a checkpoint.

  Raises:
    CheckpointError: no checkpoint, or a damaged one.
    ConfigError: without an encoder, or with a tokenizer that doesn't fit.
  """
  path = _existing(path)
  params, meta = manager.load_params(path, step=step)
  return LoadedCheckpoint(params, *_described(path, params, meta))


def _existing(path: str | pathlib.Path) -> buckets.Path:
  path = buckets.origin(path)
  if not path.exists():
    raise ConfigError(
      f"{path}: no such folder; expected the workdir of a run, or one of its "
      "checkpoints."
    )
  return path


def _described(
  path: buckets.Path, parts: Collection[str], meta: dict
) -> Described:
  """By what was saved with it, and the names of its parts."""
  if "encoder" not in parts or "encoder" not in meta.get("task", {}):
    raise ConfigError(
      f"{path} has no encoder (it has {', '.join(sorted(parts))}): give the "
      "workdir of pretraining, of fine-tuning or of an import."
    )
  tokenizer = load_tokenizer(tokenizer_dir(path))
  cfg = restored(meta["task"]["encoder"])
  if tokenizer.vocab_size != cfg.vocab_size:
    raise ConfigError(
      f"the tokenizer of {path} has {tokenizer.vocab_size} tokens, its encoder "
      f"{cfg.vocab_size}: it belongs to another run."
    )
  return Described(cfg, tokenizer, meta)


def open_best(path: str | pathlib.Path) -> LoadedCheckpoint:
  """Opens a fine-tuned workdir's best checkpoint; of others, the newest.

  Raises:
    CheckpointError, ConfigError: see open_checkpoint.
  """
  folder = buckets.origin(path) / "checkpoints"
  for step in files.ranked(folder)[:1]:
    record = files.read_record(folder / str(step))
    if "kind" in record["meta"]["task"]:
      return open_checkpoint(path, step="best")
  return open_checkpoint(path)


def facts(opened: LoadedCheckpoint) -> dict[str, str]:
  """Returns what must be equal on all hosts that open it (hosts.together)."""
  digest = hashlib.sha256()
  for path, x in jax.tree_util.tree_leaves_with_path(opened.params):
    digest.update(jax.tree_util.keystr(path).encode())
    digest.update(np.ascontiguousarray(x).view(np.uint8))
  return {
    "the weights of init_from": digest.hexdigest(),
    "the tokenizer of init_from": opened.tokenizer.sha256,
  }


def tokenizer_dir(path: str | pathlib.Path) -> buckets.Path:
  """Returns tokenizer/ of the workdir that path is or lies in (or a URL).

  Raises:
    ConfigError: there is none.
  """
  path = buckets.origin(path)
  for folder in (path, *path.parents[:2]):
    if (folder / "tokenizer").is_dir():
      return folder / "tokenizer"
  raise ConfigError(f"no tokenizer/ in {path} or above it: is it a workdir?")
