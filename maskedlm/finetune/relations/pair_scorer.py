"""Scores of pairs of spans, by a feedforward net over their vectors.

Span relation classification (Jurafsky & Martin, section 11.5.2): how are these
two spans related?
"""

import jax.numpy as jnp
from flax import linen as nn

from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.layers import ACTIVATIONS, Dense, Dropout


def span_means(x, spans):
  """Returns the mean [B, M, D] of each span's tokens (equation 11.21).

  Args:
    x: [B, L, D], the encoder's vectors.
    spans: int32 [B, M, 2], the first and the last token of each.
  """
  places = jnp.arange(x.shape[1])
  inside = (places >= spans[..., :1]) & (places <= spans[..., 1:])
  share = inside / jnp.sum(inside, axis=-1, keepdims=True)
  return jnp.einsum("BML,BLD->BMD", share.astype(x.dtype), x)


class FeedForward(nn.Module):
  """Dropout, dense, activation, dropout, dense."""

  cfg: EncoderConfig
  inputs: int
  outputs: int

  @nn.compact
  def __call__(self, x, *, train: bool):
    """Maps x [N, inputs] to float32 [N, outputs]."""
    cfg = self.cfg
    D = cfg.width
    hidden = Dense(
      (self.inputs,), (D,), cfg.init_stddev, cfg.dtype, name="hidden_dense"
    )
    last = Dense(
      (D,), (self.outputs,), cfg.init_stddev, cfg.dtype, name="score_dense"
    )
    x = hidden(Dropout(cfg.dropout)(x, train=train))
    x = Dropout(cfg.dropout)(ACTIVATIONS[cfg.activation](x), train=train)
    return last(x).astype(jnp.float32)
