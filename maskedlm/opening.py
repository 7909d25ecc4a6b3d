"""A checkpoint opened to be used: parameters, architecture, tokenizer.

Fine-tuning, prediction, filled masks, embeddings and exports begin here.
"""

import hashlib
import pathlib
from typing import NamedTuple

import jax
import numpy as np

from maskedlm import checkpoint, checkpoint_files, remote
from maskedlm.config import ConfigError
from maskedlm.corpus import tokenizer as tokenizers
from maskedlm.modeling.architecture import EncoderConfig, restored
from maskedlm.task import Params


class Opened(NamedTuple):
  """What a checkpoint holds and what lies beside it."""

  params: Params  # numpy.
  cfg: EncoderConfig
  tokenizer: tokenizers.Tokenizer
  meta: dict  # As it was saved, with "step", "task", "heldout", ...


def open_checkpoint(
  path: str | pathlib.Path, *, step: int | str | None = None
) -> Opened:
  """Opens a workdir (its newest checkpoint, or `step`) or a checkpoint.

  Raises:
    CheckpointError: no checkpoint, or a damaged one.
    ConfigError: without an encoder, or with a tokenizer that doesn't fit.
  """
  path = remote.origin(path)
  if not path.exists():
    raise ConfigError(
      f"{path}: no such folder; expected the workdir of a run, or one of its "
      "checkpoints."
    )
  params, meta = checkpoint.load_params(path, step=step)
  if "encoder" not in params or "encoder" not in meta.get("task", {}):
    raise ConfigError(
      f"{path} has no encoder (it has {', '.join(sorted(params))}): give the "
      "workdir of pretraining, of fine-tuning or of an import."
    )
  tokenizer = tokenizers.load(tokenizer_dir(path))
  cfg = restored(meta["task"]["encoder"])
  if tokenizer.vocab_size != cfg.vocab_size:
    raise ConfigError(
      f"the tokenizer of {path} has {tokenizer.vocab_size} tokens, its encoder "
      f"{cfg.vocab_size}: it belongs to another run."
    )
  return Opened(params, cfg, tokenizer, meta)


def open_best(path: str | pathlib.Path) -> Opened:
  """Opens a fine-tuned workdir's best checkpoint; of others, the newest.

  Raises:
    CheckpointError, ConfigError: see open_checkpoint.
  """
  folder = remote.origin(path) / "checkpoints"
  for step in checkpoint_files.ranked(folder)[:1]:
    record = checkpoint_files.read_record(folder / str(step))
    if "kind" in record["meta"]["task"]:
      return open_checkpoint(path, step="best")
  return open_checkpoint(path)


def facts(opened: Opened) -> dict[str, str]:
  """What must be the same on all hosts that open it (hosts.together)."""
  digest = hashlib.sha256()
  for path, x in jax.tree_util.tree_leaves_with_path(opened.params):
    digest.update(jax.tree_util.keystr(path).encode())
    digest.update(np.ascontiguousarray(x).view(np.uint8))
  return {
    "the weights of init_from": digest.hexdigest(),
    "the tokenizer of init_from": opened.tokenizer.sha256,
  }


def tokenizer_dir(path: str | pathlib.Path) -> pathlib.Path:
  """tokenizer/ of the workdir that path is, or lies in; of an address, a copy.

  Raises:
    ConfigError: there is none.
  """
  path = remote.origin(path)
  for folder in (path, *path.parents[:2]):
    if (folder / "tokenizer").is_dir():
      return remote.local(folder / "tokenizer")
  raise ConfigError(f"no tokenizer/ in {path} or above it: is it a workdir?")
