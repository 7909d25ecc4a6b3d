"""Multi-head self-attention of the encoder (arXiv:1706.03762, section 3.2.2).

A position sees the positions of its own segment: padding is a segment too, so
no row of the softmax is empty, and rows may be packed with several texts.
positions.py has the other ways to say who sees whom, and from how far.
"""

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.modeling.layers import Dense, Dropout
from maskedlm.modeling.positions import rotate
from maskedlm.modeling.positions import same_segment as same_segment


class Attention(nn.Module):
  """Self-attention over flattened rows."""

  num_heads: int
  dropout: float
  init_stddev: float
  dtype: str
  output_stddev: float | None = None  # Of the last layer; None: init_stddev.
  use_bias: bool = True

  @nn.compact
  def __call__(self, x, visible, bias=None, rotation=None, *, train: bool):
    """x [B*L, D] and the fields of a positions.Sight -> [B*L, D]."""
    B, _, L, _ = visible.shape
    D, H = x.shape[-1], self.num_heads
    K = D // H
    stddevs = self.init_stddev, self.output_stddev or self.init_stddev
    dense = {"dtype": self.dtype, "use_bias": self.use_bias}
    # One matmul for query, key and value.
    qkv = Dense((D,), (3, H, K), stddevs[0], **dense, name="qkv")(x)
    qkv = qkv.reshape(B, L, 3, H, K)
    query, key, value = (qkv[:, :, i] for i in range(3))
    if rotation is not None:
      query, key = rotate(query, *rotation), rotate(key, *rotation)
    scores = jnp.einsum("BLHK,BSHK->BHLS", query, key)
    scores = scores.astype(jnp.float32) * K**-0.5
    if bias is not None:
      scores = scores + bias
    scores = jnp.where(visible, scores, -1e9)
    weights = jax.nn.softmax(scores, axis=-1)
    self.sow("attention", "weights", weights)  # For who asks (mlm.attend).
    weights = Dropout(self.dropout)(weights.astype(x.dtype), train=train)
    y = jnp.einsum("BHLS,BSHK->BLHK", weights, value)
    y = y.reshape(B * L, H, K)
    return Dense((H, K), (D,), stddevs[1], **dense, name="out")(y)
