"""Deep biaffine attention: scores of heads, and of the labels of arcs.

Dozat and Manning 2017, arXiv:1611.01734, section 3 and figure 2. Each word, and
[CLS] in the place of the root, has a vector as a dependent and one as a head,
by feedforward nets that keep what parsing needs:

  arcs    h_head U h_dep + h_head u                             (equation 6)
  labels  h_head U_t h_dep + W_t (h_dep; h_head) + b_t          (equation 3)

Dimensions: B rows, W words of a row, C candidates for heads, the first of which
is [CLS], K some of them, A and R the widths of arcs and of labels, T labels.
"""

import jax.numpy as jnp
from flax import linen as nn

from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.heads import head_input, head_stddevs
from maskedlm.modeling.layers import ACTIVATIONS, Dense, Dropout


class ArcHead(nn.Module):
  """Scores of every candidate as the head of every word."""

  cfg: EncoderConfig
  width: int  # A.

  @nn.compact
  def __call__(self, candidates, *, train: bool):
    """Returns float32 logits [B, W, C] for the vectors [B, C, D]; W = C - 1."""
    cfg, A = self.cfg, self.width
    candidates = PreparedInput(cfg, name="input")(candidates, train=train)
    dependents = Projection(cfg, A, name="dependent")(
      candidates[:, 1:], train=train
    )
    heads = Projection(cfg, A, name="head")(candidates, train=train)
    _, stddev = head_stddevs(cfg)
    # With its bias: h_head (U h_dep + u).
    mixed = Dense((A,), (A,), stddev, cfg.dtype, name="biaffine")(
      dependents.reshape(-1, A)
    )
    mixed = mixed.reshape(dependents.shape)
    return jnp.einsum("bwa,bca->bwc", mixed, heads).astype(jnp.float32)


class LabelHead(nn.Module):
  """Scores of the labels of some arcs."""

  cfg: EncoderConfig
  width: int  # R.
  num_labels: int  # T.

  @nn.compact
  def __call__(self, candidates, places, *, train: bool):
    """Returns float32 logits [B, W, K, T] for candidates [B, C, D].

    `places` int32 [B, W, K] are the candidates to be a word's head.
    """
    cfg, R, T = self.cfg, self.width, self.num_labels
    B, W, K = places.shape
    candidates = PreparedInput(cfg, name="input")(candidates, train=train)
    dependents = Projection(cfg, R, name="dependent")(
      candidates[:, 1:], train=train
    )
    heads = Projection(cfg, R, name="head")(candidates, train=train)
    ones = jnp.ones((*heads.shape[:-1], 1), heads.dtype)
    heads = jnp.concatenate([heads, ones], axis=-1)
    chosen = jnp.take_along_axis(
      heads, places.reshape(B, W * K, 1), axis=1
    ).reshape(B, W, K, R + 1)
    _, stddev = head_stddevs(cfg)
    # With the 1 of each head and the bias: all four terms of the equation.
    mixed = Dense((R,), (R + 1, T), stddev, cfg.dtype, name="biaffine")(
      dependents.reshape(-1, R)
    ).reshape(B, W, R + 1, T)
    logits = jnp.einsum("bwkr,bwrt->bwkt", chosen, mixed)
    return logits.astype(jnp.float32)


class PreparedInput(nn.Module):
  """The input of a head (heads.head_input) with dropout."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x, *, train: bool):
    """Returns [B, C, D] for x [B, C, D]."""
    flat = head_input(self.cfg, x.reshape(-1, x.shape[-1]))
    return Dropout(self.cfg.dropout)(flat, train=train).reshape(x.shape)


class Projection(nn.Module):
  """Dense, activation and dropout: what a role needs of a word."""

  cfg: EncoderConfig
  width: int

  @nn.compact
  def __call__(self, x, *, train: bool):
    """Returns [B, n, width] for x [B, n, D]."""
    cfg, D = self.cfg, x.shape[-1]
    stddev, _ = head_stddevs(cfg)
    dense = Dense((D,), (self.width,), stddev, cfg.dtype, name="dense")
    y = ACTIVATIONS[cfg.activation](dense(x.reshape(-1, D)))
    y = Dropout(cfg.dropout)(y, train=train)
    return y.reshape(*x.shape[:-1], self.width)
