"""Dense heads for labels: of rows, of tokens, and of the words they begin.

Dimensions: B rows, L tokens of a row (also the space for its words), T tags.
"""

import jax.numpy as jnp
from flax import linen as nn

from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.heads import head_input, head_stddevs
from maskedlm.modeling.layers import ACTIVATIONS, Dense, Dropout


class ClassHead(nn.Module):
  """Dropout and a dense layer: logits of the labels, or one score."""

  cfg: EncoderConfig
  outputs: int

  @nn.compact
  def __call__(self, x, *, train: bool):
    """Maps x [B, D] to float32 [B, outputs]."""
    cfg = self.cfg
    x = Dropout(cfg.dropout)(x, train=train)
    _, stddev = head_stddevs(cfg)
    dense = Dense(
      (cfg.width,), (self.outputs,), stddev, cfg.dtype, name="dense"
    )
    return dense(x).astype(jnp.float32)


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


class TagHead(nn.Module):
  """Dropout and a dense layer: scores of all tags for each token."""

  cfg: EncoderConfig
  num_tags: int

  @nn.compact
  def __call__(self, x, *, train: bool):
    """Maps x [B, L, D] to float32 logits [B, L, T]."""
    cfg = self.cfg
    B, L, D = x.shape
    x = head_input(cfg, x.reshape(B * L, D))
    x = Dropout(cfg.dropout)(x, train=train)
    T = self.num_tags
    _, stddev = head_stddevs(cfg)
    x = Dense((D,), (T,), stddev, cfg.dtype, name="dense")(x)
    return x.reshape(B, L, T).astype(jnp.float32)
