"""Building blocks that know no architecture: dense, norm, dropout, gelu.

Used by attention.py, encoder.py and heads.py. Activations come flattened,
[B*L, D]: on XLA:CPU a dense layer over [B, L, D] takes 1.7 times as long, as
its weight gradient contracts two dimensions (docs/performance.md).
Parameters are float32; `dtype` is what is computed in.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from maskedlm.modeling.random_words import random_words

DTYPES = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}


def gelu(x):
  """x * Phi(x) (arXiv:1606.08415), by erf.

  jax.nn.gelu takes erfc, exact far in the left tail, where the value is
  smaller than 1e-7 anyway, and 3 times slower on XLA:CPU.
  """
  return 0.5 * x * (1.0 + jax.lax.erf(x * math.sqrt(0.5)))


def gelu_tanh(x):
  """The tanh approximation, which google-research/bert calls gelu."""
  return jax.nn.gelu(x, approximate=True)


ACTIVATIONS = {"gelu": gelu, "gelu_tanh": gelu_tanh}


class Dense(nn.Module):
  """x @ kernel + bias; contracts the last `len(inputs)` dimensions of x."""

  inputs: tuple[int, ...]
  features: tuple[int, ...]
  init_stddev: float
  dtype: str
  use_bias: bool = True

  @nn.compact
  def __call__(self, x):
    """x [..., *inputs] -> [..., *features]."""
    init = nn.initializers.truncated_normal(self.init_stddev)
    kernel = self.param("kernel", init, (*self.inputs, *self.features))
    dtype = DTYPES[self.dtype]
    y = jnp.tensordot(
      x.astype(dtype), kernel.astype(dtype), axes=len(self.inputs)
    )
    if not self.use_bias:
      return y
    bias = self.param("bias", nn.initializers.zeros, self.features)
    return y + bias.astype(dtype)


class LayerNorm(nn.Module):
  """Layer normalisation (arXiv:1607.06450) over the last dimension, in f32."""

  epsilon: float
  dtype: str
  use_bias: bool = True

  @nn.compact
  def __call__(self, x):
    """x [..., D] -> [..., D] of `dtype`."""
    scale = self.param("scale", nn.initializers.ones, x.shape[-1:])
    x = x.astype(jnp.float32)
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(x), axis=-1, keepdims=True)
    y = x * jax.lax.rsqrt(variance + self.epsilon) * scale
    if self.use_bias:
      y = y + self.param("bias", nn.initializers.zeros, x.shape[-1:])
    return y.astype(DTYPES[self.dtype])


class RMSNorm(nn.Module):
  """Division by the root mean square (arXiv:1910.07467), in f32; no bias."""

  epsilon: float
  dtype: str

  @nn.compact
  def __call__(self, x):
    """x [..., D] -> [..., D] of `dtype`."""
    scale = self.param("scale", nn.initializers.ones, x.shape[-1:])
    x = x.astype(jnp.float32)
    square = jnp.mean(jnp.square(x), axis=-1, keepdims=True)
    y = x * jax.lax.rsqrt(square + self.epsilon) * scale
    return y.astype(DTYPES[self.dtype])


class Dropout(nn.Module):
  """Zeroes a share of the entries and scales up the others.

  The share is rounded to 2^-32 and the scale is exact for the rounded share, so
  that the expectation is x.
  """

  rate: float

  @nn.compact
  def __call__(self, x, *, train: bool):
    """x [..., D] -> [..., D]; uses the rng "dropout" if train."""
    dropped = round(self.rate * 2**32)
    if not train or not dropped:
      return x
    words = random_words(self.make_rng("dropout"), x.shape)
    scale = 2**32 / (2**32 - dropped)
    return jnp.where(words >= np.uint32(dropped), x * scale, 0)
