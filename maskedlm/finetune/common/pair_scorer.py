"""Scores of pairs of spans: their vectors together, through an FFN.

Span relation classification (Jurafsky & Martin, section 11.5.2): how are these
two spans related? The heads of relations and coreference share this.
"""

import jax.numpy as jnp
from flax import linen as nn

from maskedlm.finetune.common.span_vectors import (ComponentLayer, span_vectors)
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.layers import (ACTIVATIONS, Dense, Dropout)


def span_means(x, spans):
  """The mean of each span's tokens (11.21).

  Args:
    x: [B, L, D], the encoder's vectors.
    spans: int32 [B, M, 2], the first and the last token of each.

  Returns:
    [B, M, D].
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
    """x [N, inputs] -> float32 [N, outputs]."""
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


class PairScorer(nn.Module):
  """How well each of some spans goes with the first one: FFN([p; a; p * a]).

  Lee et al. 2017 (arXiv:1707.07045), section 4, without distances. A span's
  vector is spanRep, of a name in span_vectors.REPRESENTATIONS.
  """

  cfg: EncoderConfig
  representation: str

  @nn.compact
  def __call__(self, x, spans, *, train: bool):
    """x [B, L, D], spans int32 [B, M, 2] -> float32 [B, M - 1]."""
    B, M, _ = spans.shape
    parts = ComponentLayer(self.cfg, self.representation, name="parts")(x)
    vectors = span_vectors(
      self.representation, parts, spans[..., 0], spans[..., 1]
    )
    others = vectors[:, 1:]
    first = jnp.broadcast_to(vectors[:, :1], others.shape)
    pairs = jnp.concatenate([first, others, first * others], axis=-1)
    X = pairs.shape[-1]
    ffn = FeedForward(self.cfg, X, 1, name="ffn")
    return ffn(pairs.reshape(-1, X), train=train).reshape(B, M - 1)
