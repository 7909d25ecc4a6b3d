"""A head on the encoder: its parameters, and logits from a batch."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from flax import linen as nn

from maskedlm.core.task import Array, Batch, Key, Params
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig


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

  Args:
    cfg: the architecture.
    name: the key of the head's parameters.
    module: called as module(*inputs, train=...).
    example: small inputs with which the parameters are initialised.
    inputs: (hidden states [B, L, D], batch) -> the module's inputs.
  """

  def init(key: Key) -> Params:
    return {name: module.init(key, *example, train=False)["params"]}

  def logits(params: Params, batch: Batch, key: Key | None, train: bool):
    hidden = masked_lm.encode(cfg, params, batch, key, train)
    return module.apply(
      {"params": params[name]},
      *inputs(hidden, batch),
      train=train,
      rngs=masked_lm.head_rngs(key, train),
    )

  return Head(init, logits)
