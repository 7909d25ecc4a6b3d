"""What fine-tuning starts from: an opened checkpoint's encoder (opening.py).

The checkpoint may be of pretraining, of an import (interop/) or of another
fine-tuning (MNLI's for RTE): its architecture, its tokenizer, its encoder and
its pooler are taken; every other head starts anew.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.training.checkpoints.load import LoadedCheckpoint

SHARED = ("encoder", "pooler")  # What a new task takes over.


def architecture(start: LoadedCheckpoint, model, length: int) -> EncoderConfig:
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
    unroll=model.unroll,
  )


def check_sentences(
  start: LoadedCheckpoint, made: Mapping[str, Any], log
) -> None:
  """A log line where the checkpoint makes texts' vectors in another way.

  Args:
    start: the checkpoint.
    made: how the new task makes them, as its kind's `sentences` says.
    log: gets the line.
  """
  before = start.meta["task"].get("sentences", {})
  others = [
    f"{name} {before[name]!r} (here {value!r})"
    for name, value in made.items()
    if before.get(name, value) != value
  ]
  if others:
    log(f"init_from made the vectors of texts with {', '.join(others)}")


def from_checkpoint(
  start: LoadedCheckpoint, *, reinit_layers: int
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
