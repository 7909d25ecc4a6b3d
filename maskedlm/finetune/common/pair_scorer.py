"""Scores of pairs of spans, by a feedforward net over their vectors.

Span relation classification (Jurafsky & Martin, section 11.5.2): how are these
two spans related? The heads of relations and coreference share this module.
"""

import jax.numpy as jnp
from flax import linen as nn

from maskedlm.finetune.common.span_vectors import ComponentLayer, span_vectors
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


class PairScorer(nn.Module):
  """Scores each other span against the first one: FFN([p; a; p * a]).

  Lee et al. 2017 (arXiv:1707.07045), section 4, without distances. A span's
  vector is one of span_vectors.REPRESENTATIONS.
  """

  cfg: EncoderConfig
  representation: str

  @nn.compact
  def __call__(self, x, spans, *, train: bool):
    """Maps x [B, L, D] and spans int32 [B, M, 2] to float32 [B, M - 1]."""
    B, M, _ = spans.shape
    components = ComponentLayer(self.cfg, self.representation, name="parts")(x)
    vectors = span_vectors(
      self.representation, components, spans[..., 0], spans[..., 1]
    )
    others = vectors[:, 1:]
    first = jnp.broadcast_to(vectors[:, :1], others.shape)
    pairs = jnp.concatenate([first, others, first * others], axis=-1)
    X = pairs.shape[-1]
    ffn = FeedForward(self.cfg, X, 1, name="ffn")
    return ffn(pairs.reshape(-1, X), train=train).reshape(B, M - 1)
