"""The parameters that fine-tuning starts from: a checkpoint's encoder.

The checkpoint may come from pretraining, from an import (interop/) or from
fine-tuning (MNLI for RTE, TriviaQA for SQuAD). Its architecture, tokenizer,
encoder and pooler are used, and the heads of the same task with the same
labels; every other head starts from random parameters.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params
from maskedlm.finetune.contract import Application, FinetuneTask
from maskedlm.finetune.options import FinetuneConfig, ModelOptions
from maskedlm.finetune.take_heads import take_heads
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.training.checkpoints.load import LoadedCheckpoint

SHARED = ("encoder", "pooler")  # Subtrees that a new task takes over.


def resolve_architecture(
  start: LoadedCheckpoint, model: ModelOptions, length: int
) -> EncoderConfig:
  """Returns the checkpoint's architecture with the options of config.model.

  Raises:
    ConfigError: rows of `length` tokens don't fit the encoder's positions;
      reinit_layers is out of range.
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


def check_sentence_pooling(
  start: LoadedCheckpoint, pooling: Mapping[str, Any], log
) -> None:
  """Logs a line if the checkpoint computes text vectors in another way.

  `pooling` is the task's way, from FinetuneTask.sentence_pooling.
  """
  before = start.meta["task"].get("sentences", {})
  differences = [
    f"{name} {before[name]!r} (here {value!r})"
    for name, value in pooling.items()
    if before.get(name, value) != value
  ]
  if differences:
    log(f"init_from made the vectors of texts with {', '.join(differences)}")


def initial_heads(
  start: LoadedCheckpoint,
  config: FinetuneConfig,
  task: FinetuneTask,
  label_info: Mapping[str, Any],
  app: Application,
  log,
) -> Params:
  """Returns the heads that don't start from random parameters.

  A line is logged if the checkpoint is fine-tuned.
  """
  fresh = config.model.fresh_head or not config.pretrained
  if heads := app.initial_heads({} if fresh else start.params):
    return heads
  if fresh:
    return {}
  shapes = jax.eval_shape(lambda: app.init(jax.random.key(0)))
  shapes = {name: x for name, x in shapes.items() if name not in SHARED}
  return take_heads(start, config.task.kind, task, label_info, shapes, log)


def from_checkpoint(
  start: LoadedCheckpoint, heads: Params, *, reinit_layers: int
) -> Callable[[Params], Params]:
  """Returns a function from fresh to initial parameters, for loop.run.

  It takes the encoder and the pooler from the checkpoint, except for the last
  `reinit_layers` layers of the encoder, and the heads that are given.
  """
  kept = start.cfg.num_layers - reinit_layers

  def begin(fresh: Params) -> Params:
    shared = fresh.keys() & start.params.keys() & {*SHARED}
    params = {**fresh, **heads, **{n: start.params[n] for n in shared}}
    if reinit_layers:
      layers = jax.tree.map(
        lambda old, new: jnp.concatenate([jnp.asarray(old[:kept]), new[kept:]]),
        params["encoder"]["layers"],
        fresh["encoder"]["layers"],
      )
      params["encoder"] = {**params["encoder"], "layers": layers}
    return params

  return begin
