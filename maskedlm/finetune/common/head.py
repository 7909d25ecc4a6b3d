"""Heads on the encoder: their parameters, and their results for a batch."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.core.task import Array, Batch, Key, Params
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.heads import Pooler, row_vector
from maskedlm.modeling.task_heads.label_heads import ClassHead


class Heads(NamedTuple):
  """The heads of a task, each a subtree of the parameters by its name."""

  cfg: EncoderConfig
  # Name -> (the module, small inputs with which its parameters are made).
  modules: Mapping[str, tuple[nn.Module, Sequence[Array]]]

  def init(self, key: Key) -> Params:
    """Returns {name: fresh parameters}."""
    count = len(self.modules)
    keys = jax.random.split(key, count) if count > 1 else [key]
    return {
      name: module.init(head_key, *example, train=False)["params"]
      for head_key, (name, (module, example)) in zip(
        keys, self.modules.items(), strict=True
      )
    }

  def encode(
    self, params: Params, batch: Batch, key: Key | None, train: bool
  ) -> Array:
    """Returns the encoder's vectors [B, L, D], which all heads read."""
    return masked_lm.encode(self.cfg, params, batch, key, train)

  def apply(
    self, name: str, params: Params, *inputs: Any, key: Key | None, train: bool
  ) -> Any:
    """Returns a head's result for its inputs.

    Args:
      params: those of the task.
      key: for dropout; None where there is none.
    """
    module, _ = self.modules[name]
    return module.apply(
      {"params": params[name]},
      *inputs,
      train=train,
      rngs=masked_lm.head_rngs(key, train),
    )


class Head(NamedTuple):
  """The parameters and the logits of a head on the encoder."""

  init: Callable[[Key], Params]  # {name of the head: its parameters}.
  # (params, batch, key, train) -> float32 logits [B, ...].
  logits: Callable[[Params, Batch, Key | None, bool], Array]


def make_head(
  cfg: EncoderConfig,
  name: str,
  module: nn.Module,
  example: Sequence[Array],
  inputs: Callable[[Array, Batch], Sequence[Array]] = lambda x, batch: (x,),
) -> Head:
  """Returns the Head that applies a module to the encoder's output.

  `name` is the key of its parameters, which small inputs, `example`,
  initialise. The module is called as module(*inputs, train=...), with the
  `inputs` of (hidden states [B, L, D], batch).
  """
  heads = Heads(cfg, {name: (module, example)})

  def logits(params: Params, batch: Batch, key: Key | None, train: bool):
    hidden = heads.encode(params, batch, key, train)
    return heads.apply(
      name, params, *inputs(hidden, batch), key=key, train=train
    )

  return Head(heads.init, logits)


def make_row_head(
  cfg: EncoderConfig, outputs: int, *, pooler: bool, name: str = "class_head"
) -> Head:
  """Returns a Head with logits [B, outputs] on the vector of each row."""
  module = ClassHead(cfg, outputs)

  def init(key: Key) -> Params:
    head_key, pooler_key = jax.random.split(key)
    x = jnp.zeros((1, cfg.width))
    params = {name: module.init(head_key, x, train=False)["params"]}
    if pooler:
      params["pooler"] = Pooler(cfg).init(pooler_key, x[:, None])["params"]
    return params

  def logits(params: Params, batch: Batch, key: Key, train: bool):
    hidden = masked_lm.encode(cfg, params, batch, key, train)
    pooler_params = params["pooler"] if pooler else None
    x = row_vector(cfg, hidden, batch["segment_ids"], pooler_params)
    rngs = masked_lm.head_rngs(key, train)
    return module.apply({"params": params[name]}, x, train=train, rngs=rngs)

  return Head(init, logits)
