"""The heads of the encoder: masked LM, span boundary, pooler, next sentence.

Each is a module with its own subtree of the parameters, so that it can be left
out or loaded alone without touching the encoder.
"""

from typing import Any

import jax.numpy as jnp
from flax import linen as nn

from maskedlm.modeling import vocabulary_softmax
from maskedlm.modeling.arrays import Array, Float, Int
from maskedlm.modeling.encoder import Embed, EncoderConfig, make_norm
from maskedlm.modeling.layers import ACTIVATIONS, Dense, gelu


def gather_positions(
  x: Float[Array, "B L D"], positions: Int[Array, "B P"]
) -> Float[Array, "B P D"]:
  """Returns the vectors at positions."""
  return jnp.take_along_axis(x, positions[..., None], axis=1)


def predicted_at(
  cfg: EncoderConfig, positions: Int[Array, "B P"]
) -> Int[Array, "B P"]:
  """Returns the positions whose vectors predict the tokens at positions."""
  return jnp.maximum(positions - 1, 0) if cfg.shifted else positions


def sentence_vector(
  cfg: EncoderConfig, x: Float[Array, "B L D"], segment_ids: Int[Array, "B L"]
) -> Float[Array, "B D"]:
  """Returns the vector that represents each row.

  It is the vector of [CLS], the first token; in a left-to-right model, where
  [CLS] attends only to itself, the vector of the last real token; of two LSTMs,
  the half of either that has read the row. Segment 0 is padding.
  """
  if cfg.reads in ("both", "right"):
    return x[:, 0]
  last = jnp.sum(segment_ids > 0, axis=1) - 1
  last = jnp.take_along_axis(x, last[:, None, None], axis=1)[:, 0]
  if cfg.reads == "left":
    return last
  W = cfg.width // 2
  return jnp.concatenate([last[:, :W], x[:, 0, W:]], axis=1)


def mean_vector(
  cfg: EncoderConfig, x: Float[Array, "B L D"], segment_ids: Int[Array, "B L"]
) -> Float[Array, "B D"]:
  """Returns the mean of each row's real tokens.

  Published ModernBERT classifiers may use it (classifier_pooling).
  """
  del cfg
  real = (segment_ids > 0)[..., None]
  # A filler row has no tokens; its vector is ignored, but must be finite.
  count = jnp.maximum(jnp.sum(real, axis=1), 1)
  total = jnp.sum(x, axis=1, dtype=jnp.float32, where=real)
  return (total / count).astype(x.dtype)


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


ROW_POOLS = {"cls": sentence_vector, "mean": mean_vector}


class MlmHead(nn.Module):
  """Dense, activation, norm, then a table of tokens as output layer.

  cfg.mlm_head may leave out the first three; the table is the token embedding,
  unless cfg.tied says otherwise. It is applied to gathered positions, never to
  whole rows, so logits are [B, P, V].
  """

  cfg: EncoderConfig

  @nn.compact
  def __call__(
    self,
    x: Float[Array, "B P D"],
    embedding: Float[Array, "V E"],
    output=vocabulary_softmax.logits,
  ):
    """Returns float32 logits [B, P, V].

    Args:
      x: vectors at the positions that are predicted.
      output: the output layer; vocabulary_softmax.loss_and_correct, with its
        labels bound, returns (loss, correct) [B, P] in place of logits.
    """
    cfg, V = self.cfg, self.cfg.padded_vocab_size
    B, P, D = x.shape
    is_dense = cfg.mlm_head == "dense"
    if is_dense:
      dense = Dense(
        (D,),
        (cfg.embedding_size,),
        cfg.init_stddev,
        cfg.dtype,
        cfg.biases,
        name="transform",
      )
      x = ACTIVATIONS[cfg.activation](dense(x.reshape(B * P, D)))
      x = make_norm(cfg, "norm")(x).reshape(B, P, cfg.embedding_size)
    if not cfg.tied:
      init = nn.initializers.truncated_normal(cfg.init_stddev)
      embedding = self.param("embedding", init, (V, x.shape[-1]))
    bias = jnp.zeros(V)
    if is_dense or cfg.biases:
      bias = self.param("bias", nn.initializers.zeros, (V,))
    return output(cfg, x, embedding, bias)


class SboHead(nn.Module):
  """Predicts a token of a span from the span's neighbours and its place in it.

  This is the span boundary objective (Joshi et al., arXiv:1907.10529, section
  3.2): two layers of dense, activation, norm on [left; right; place], then the
  token embedding as output layer, with its own bias.
  """

  cfg: EncoderConfig
  max_span: int  # Number of places that have an embedding.
  place_width: int  # Width of that embedding.

  @nn.compact
  def __call__(
    self,
    left: Float[Array, "B P D"],
    right: Float[Array, "B P D"],
    place: Int[Array, "B P"],
    embedding: Float[Array, "V E"],
    output=vocabulary_softmax.logits,
  ):
    """Returns float32 logits [B, P, V], or the result of another `output`.

    Args:
      left, right: vectors of the tokens next to the span.
      place: place of the token in the span, from 0.
      output: as in MlmHead.
    """
    cfg = self.cfg
    B, P, D = left.shape
    places = Embed(
      self.max_span, self.place_width, cfg.init_stddev, cfg.dtype, name="place"
    )
    known = jnp.concatenate([left, right, places(place)], axis=-1)
    known = known.reshape(B * P, 2 * D + self.place_width)
    x = DenseNorm(cfg, D, name="first")(known)
    x = DenseNorm(cfg, cfg.embedding_size, name="second")(x)
    x = x.reshape(B, P, cfg.embedding_size)
    bias = self.param("bias", nn.initializers.zeros, (cfg.padded_vocab_size,))
    return output(cfg, x, embedding, bias)


class DenseNorm(nn.Module):
  """Dense, activation, norm."""

  cfg: EncoderConfig
  features: int
  stddev: float | None = None  # cfg.init_stddev if None.

  @nn.compact
  def __call__(self, x: Float[Array, "n width"]) -> Float[Array, "n features"]:
    """Returns vectors of self.features; the width may be any."""
    cfg, inputs = self.cfg, x.shape[-1:]
    dense = Dense(
      inputs,
      (self.features,),
      self.stddev or cfg.init_stddev,
      cfg.dtype,
      cfg.biases,
      name="dense",
    )
    return make_norm(cfg, "norm")(ACTIVATIONS[cfg.activation](dense(x)))


def head_stddevs(cfg: EncoderConfig) -> tuple[float, float]:
  """Returns the initial deviations of a head's hidden layer and last layer.

  In BERT both are init_stddev. In ModernBERT the first is the deviation of
  layers that add to the residual stream, and the second is D^-1/2, as a norm
  precedes the last layer.
  """
  if cfg.pooler != "norm":
    return cfg.init_stddev, cfg.init_stddev
  return cfg.init_stddev / (2 * cfg.num_layers) ** 0.5, cfg.width**-0.5


# Activations of cfg.pooler: BERT's, ELECTRA's, DistilBERT's, and ModernBERT's,
# which has the activation, biases and norm of the encoder, like the MLM head.
POOLERS = {
  "tanh": lambda cfg: jnp.tanh,
  "gelu": lambda cfg: gelu,
  "relu": lambda cfg: nn.relu,
  "norm": lambda cfg: ACTIVATIONS[cfg.activation],
}


class Pooler(nn.Module):
  """Applies dense, activation and, for "norm", a norm to the [CLS] vector."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x: Float[Array, "B L D"]) -> Float[Array, "B D"]:
    """Returns a vector of each row."""
    cfg = self.cfg
    D = cfg.width
    has_norm = cfg.pooler == "norm"
    use_bias = cfg.biases or not has_norm
    stddev, _ = head_stddevs(cfg)
    dense = Dense((D,), (D,), stddev, cfg.dtype, use_bias, name="dense")
    x = POOLERS[cfg.pooler](cfg)(dense(x[:, 0]))
    return make_norm(cfg, "norm")(x) if has_norm else x


def row_vector(
  cfg: EncoderConfig,
  x: Float[Array, "B L D"],
  segment_ids: Int[Array, "B L"],
  pooler: Any = None,
) -> Float[Array, "B D"]:
  """Returns the vectors from which the rows' labels are predicted.

  Segment 0 is padding; `pooler` has the parameters of the Pooler, or is None.
  """

  def through(rows):
    if pooler is None:
      return rows[:, 0]
    return Pooler(cfg).apply({"params": pooler}, rows)

  if cfg.row_pool != "late":
    pooled = ROW_POOLS[cfg.row_pool](cfg, x, segment_ids)
    return through(pooled[:, None])
  vectors = through(x.reshape(-1, 1, x.shape[-1])).reshape(x.shape)
  return mean_vector(cfg, vectors, segment_ids)


def head_input(
  cfg: EncoderConfig, x: Float[Array, "n D"]
) -> Float[Array, "n D"]:
  """Returns the input of a head on tokens.

  It is x, except that ModernBERT's heads begin with a layer of their own. Call
  it within a head's __call__, as that layer is a submodule of the head.
  """
  if cfg.pooler != "norm":
    return x
  stddev, _ = head_stddevs(cfg)
  return DenseNorm(cfg, cfg.width, stddev, name="transform")(x)


class NspHead(nn.Module):
  """Predicts whether text B follows A (0) or is a random one (1)."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, pooled: Float[Array, "B D"]) -> Float[Array, "B 2"]:
    """Returns float32 logits."""
    cfg = self.cfg
    dense = Dense((cfg.width,), (2,), cfg.init_stddev, cfg.dtype, name="dense")
    return dense(pooled).astype(jnp.float32)


def nsp_logits(
  cfg: EncoderConfig, params, x: Float[Array, "B L D"]
) -> Float[Array, "B 2"]:
  """Returns the float32 logits of "B follows A" and of the other answer.

  Args:
    params: with "nsp_head", and "pooler" unless the head reads raw vectors.
    x: the encoder's vectors; [CLS] is the first.
  """
  pooled: Any = x[:, 0]
  if "pooler" in params:
    pooled = Pooler(cfg).apply({"params": params["pooler"]}, x)
  logits: Any = NspHead(cfg).apply({"params": params["nsp_head"]}, pooled)
  return logits
