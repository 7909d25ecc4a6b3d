"""What fine-tuning starts from: a checkpoint's encoder and all it needs.

The checkpoint may be of pretraining, of an import (interop/) or of another
fine-tuning (MNLI's for RTE): its architecture, its tokenizer, its encoder and
its pooler are taken; every other head starts anew.
"""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from maskedlm import checkpoint, checkpoint_files
from maskedlm.config import ConfigError
from maskedlm.corpus import tokenizer as tokenizers
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.task import Params


class Start(NamedTuple):
  """A checkpoint opened to be fine-tuned, or used."""

  params: Params  # numpy; all subtrees, or the shared ones.
  cfg: EncoderConfig
  tokenizer: tokenizers.Tokenizer
  meta: dict  # As it was saved, with "step", "task", "heldout", ...


SHARED = ("encoder", "pooler")  # What a new task takes over.


def open_start(path: str | pathlib.Path, *, step=None) -> Start:
  """Opens a workdir or one of its checkpoints.

  Raises:
    CheckpointError: no checkpoint, or a damaged one.
    ConfigError: without an encoder, or with a tokenizer that doesn't fit.
  """
  path = pathlib.Path(path)
  if not path.exists():
    raise ConfigError(
      f"init_from={str(path)!r}: no such folder; expected the workdir of a "
      "run, or one of its checkpoints."
    )
  params, meta = checkpoint.load_params(path, step=step)
  if "encoder" not in params or "encoder" not in meta.get("task", {}):
    raise ConfigError(
      f"{path} has no encoder (it has {', '.join(sorted(params))}): give the "
      "workdir of pretraining, of fine-tuning or of an import."
    )
  tokenizer = tokenizers.load(tokenizer_dir(path))
  cfg = EncoderConfig(**meta["task"]["encoder"])
  if tokenizer.vocab_size != cfg.vocab_size:
    raise ConfigError(
      f"the tokenizer of {path} has {tokenizer.vocab_size} tokens, its encoder "
      f"{cfg.vocab_size}: it belongs to another run."
    )
  return Start(params, cfg, tokenizer, meta)


def tokenizer_dir(path: pathlib.Path) -> pathlib.Path:
  """tokenizer/ of the workdir that path is, or lies in.

  Raises:
    ConfigError: there is none.
  """
  path = path.resolve()
  for folder in (path, *path.parents[:2]):
    if (folder / "tokenizer").is_dir():
      return folder / "tokenizer"
  raise ConfigError(f"no tokenizer/ in {path} or above it: is it a workdir?")


def architecture(start: Start, model, length: int) -> EncoderConfig:
  """The checkpoint's architecture, with the options that don't change it.

  Args:
    start: the checkpoint.
    model: config.model of fine-tuning.
    length: tokens of the longest row.

  Raises:
    ConfigError: rows that are longer than the encoder's positions.
  """
  if length > start.cfg.max_positions:
    raise ConfigError(
      f"data.length={length} is more than the {start.cfg.max_positions} "
      f"positions of the encoder; set --config.data.length="
      f"{start.cfg.max_positions} or less."
    )
  if not 0 <= model.reinit_layers <= start.cfg.num_layers:
    raise ConfigError(
      f"model.reinit_layers={model.reinit_layers}: expected 0 to "
      f"{start.cfg.num_layers}, the number of layers."
    )
  return dataclasses.replace(
    start.cfg,
    dropout=model.dropout,
    attention_dropout=model.attention_dropout,
    dtype=model.dtype,
    remat=model.remat,
  )


def from_checkpoint(
  start: Start, *, reinit_layers: int
) -> Callable[[Params], Params]:
  """-> fresh params -> those to start from (train.run's start_from)."""

  def begin(fresh: Params) -> Params:
    params = dict(fresh)
    for name in SHARED:
      if name in fresh and name in start.params:
        params[name] = start.params[name]
    layers = fresh["encoder"]["layers"]
    keep = start.cfg.num_layers - reinit_layers
    params["encoder"] = {
      **params["encoder"],
      "layers": jax.tree.map(
        lambda old, new: join(old, new, keep),
        params["encoder"]["layers"],
        layers,
      ),
    }
    return params

  def join(old: Any, new: Any, keep: int):
    """The first `keep` of the stacked layers from old, the others from new."""
    if keep == len(old):
      return old
    return jnp.concatenate([jnp.asarray(old[:keep]), new[keep:]])

  return begin


def best_step(path: str | pathlib.Path) -> str | None:
  """ "best" where the workdir has a checkpoint with a metric, else None."""
  folder = pathlib.Path(path) / "checkpoints"
  return "best" if checkpoint_files.ranked(folder) else None
