"""Building blocks that know no architecture: dense, norm, dropout, gelu.

Used by attention.py, encoder.py and heads.py. Activations come flattened,
[B*L, D]: on XLA:CPU a dense layer over [B, L, D] takes 1.7 times as long, as
its weight gradient contracts two dimensions (docs/results/performance.md).
Parameters are float32; `dtype` is what is computed in.
"""

import functools
import math

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.modeling.dropout_bits import (drop_threshold, drop, random_bits)

DTYPES = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}


# Backward keeps the input alone and recomputes the rest: autodiff of these
# elementwise functions would keep up to four arrays of its size.
_recomputed = functools.partial(jax.checkpoint, prevent_cse=False)


@_recomputed
def gelu(x):
  """x * Phi(x) (arXiv:1606.08415), by erf.

  jax.nn.gelu takes erfc, exact far in the left tail, where the value is
  smaller than 1e-7 anyway, and 3 times slower on XLA:CPU. Phi is of float32:
  in bfloat16, 1 + erf cancels to a multiple of 1/256.
  """
  wide = x.astype(jnp.float32)
  phi = 0.5 * (1.0 + jax.lax.erf(wide * math.sqrt(0.5)))
  return x * phi.astype(x.dtype)


@jax.custom_jvp
def _sigmoid(x):
  return jax.nn.sigmoid(x)


# Autodiff takes 1 - sigmoid(x), which cancels in bfloat16.
_sigmoid.defjvps(lambda dx, y, x: dx * y * jax.nn.sigmoid(-x))


@_recomputed
def gelu_tanh(x):
  """The tanh approximation, which google-research/bert calls gelu.

  (1 + tanh(u)) / 2 is sigmoid(2 u): XLA:GPU takes a tanh to be too expensive to
  recompute where it is used, and writes it to memory.
  """
  wide = x.astype(jnp.float32)
  u = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
  return x * _sigmoid((2 * u).astype(x.dtype))


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
    # In float32, as then its gradient is summed: over many tokens, sums of
    # bfloat16 lose some hundredths.
    return (y.astype(jnp.float32) + bias).astype(dtype)


def _mean(x):
  return jnp.mean(x, axis=-1, keepdims=True)


def _zero(x):
  return jnp.zeros((), x.dtype)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _normalise(x, scale, centre, epsilon):
  """(x - c) / sqrt(mean((x - c)^2) + epsilon) * scale, c = centre(x); in f32.

  x [..., D], scale [D]. Forward keeps x and two numbers a row, from which
  backward makes autodiff's gradient; in autodiff's own way XLA:GPU would write
  float32 arrays besides.
  """
  return _normalise_forward(x, scale, centre, epsilon)[0]


def _normalise_forward(x, scale, centre, epsilon):
  wide = x.astype(jnp.float32)
  middle = centre(wide)
  rate = jax.lax.rsqrt(_mean(jnp.square(wide - middle)) + epsilon)
  return (wide - middle) * rate * scale, (x, scale, middle, rate)


def _normalise_backward(centre, epsilon, saved, grad):
  del epsilon
  x, scale, *numbers = saved
  # Without the barrier XLA would recompute them wherever they are used.
  middle, rate = jax.lax.optimization_barrier(numbers)
  normed = (x.astype(jnp.float32) - middle) * rate
  inner = grad * scale
  inner = inner - centre(inner) - normed * _mean(inner * normed)
  x_grad = (rate * inner).astype(x.dtype)
  return x_grad, jnp.sum(grad * normed, axis=tuple(range(x.ndim - 1)))


_normalise.defvjp(_normalise_forward, _normalise_backward)


@jax.custom_vjp
def fork(x):
  """The identity; its gradient, which several use, is written once."""
  return x


fork.defvjp(
  lambda x: (x, None), lambda _, grad: (jax.lax.optimization_barrier(grad),)
)


class LayerNorm(nn.Module):
  """Layer normalisation (arXiv:1607.06450) over the last dimension, in f32."""

  epsilon: float
  dtype: str
  use_bias: bool = True

  @nn.compact
  def __call__(self, x):
    """x [..., D] -> [..., D] of `dtype`."""
    scale = self.param("scale", nn.initializers.ones, x.shape[-1:])
    y = _normalise(x, scale, _mean, self.epsilon)
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
    y = _normalise(x, scale, _zero, self.epsilon)
    return y.astype(DTYPES[self.dtype])


class Dropout(nn.Module):
  """Zeroes a share of the entries and scales up the others.

  The share is rounded to 2^-32.
  """

  rate: float

  @nn.compact
  def __call__(self, x, *, train: bool):
    """x [..., D] -> [..., D]; uses the rng "dropout" if train."""
    count = drop_threshold(self.rate)
    if not train or not count:
      return x
    return drop(x, random_bits(self.make_rng("dropout"), x.shape), count)
