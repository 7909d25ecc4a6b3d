"""Multi-head self-attention of the encoder (arXiv:1706.03762, section 3.2.2).

A position sees the positions of its own segment: padding is a segment too, so
no row of the softmax is empty, and rows may be packed with several texts.
"""

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.modeling.layers import Dense, Dropout


def same_segment(segment_ids):
  """segment_ids [B, L] -> [B, 1, L, S] bool: who sees whom, for all heads."""
  return (segment_ids[:, :, None] == segment_ids[:, None, :])[:, None]


class Attention(nn.Module):
  """Self-attention over flattened rows."""

  num_heads: int
  dropout: float
  init_stddev: float
  dtype: str

  @nn.compact
  def __call__(self, x, visible, *, train: bool):
    """x [B*L, D], visible [B, 1, L, S] bool -> [B*L, D]."""
    B, _, L, _ = visible.shape
    D, H = x.shape[-1], self.num_heads
    K = D // H
    dense = {"init_stddev": self.init_stddev, "dtype": self.dtype}
    # One matmul for query, key and value.
    qkv = Dense((D,), (3, H, K), **dense, name="qkv")(x)
    qkv = qkv.reshape(B, L, 3, H, K)
    query, key, value = (qkv[:, :, i] for i in range(3))
    scores = jnp.einsum("BLHK,BSHK->BHLS", query, key)
    scores = jnp.where(visible, scores.astype(jnp.float32) * K**-0.5, -1e9)
    weights = jax.nn.softmax(scores, axis=-1).astype(x.dtype)
    weights = Dropout(self.dropout)(weights, train=train)
    y = jnp.einsum("BHLS,BSHK->BLHK", weights, value)
    y = y.reshape(B * L, H, K)
    return Dense((H, K), (D,), **dense, name="out")(y)
