"""Building blocks of any architecture: dense, norm, dropout, activations.

Activations are flattened, [B*L, D]: on XLA:CPU a dense layer over [B, L, D]
takes 1.7 times as long, as its weight gradient contracts two dimensions (of
4096 x 256 x 1024, forward and backward on two cores, 49 instead of 30 ms).
Parameters are float32; `dtype`, a key of DTYPES, is the type of the
computation.
"""

import functools
import math

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.modeling.arrays import Array, Float
from maskedlm.modeling.dropout_bits import drop, drop_threshold, random_bits

DTYPES = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}


def _recomputed(function):
  """Returns the function, of which the backward pass keeps only the input.

  Autodiff of these elementwise functions would keep up to four arrays of its
  size. XLA:CPU merges both computations unless told not to.
  """
  return functools.wraps(function)(
    lambda x: jax.checkpoint(function, prevent_cse=on_cpu())(x)
  )


@_recomputed
def gelu(x):
  """Returns x * Phi(x) (arXiv:1606.08415) for x [...], computed with erf.

  jax.nn.gelu uses erfc, which is exact far in the left tail, where the value is
  below 1e-7 anyway, and 3 times slower on XLA:CPU. Phi is computed in float32:
  in bfloat16, 1 + erf cancels to a multiple of 1/256.
  """
  wide = x.astype(jnp.float32)
  phi = 0.5 * (1.0 + jax.lax.erf(wide * math.sqrt(0.5)))
  return x * phi.astype(x.dtype)


@jax.custom_jvp
def _sigmoid(x):
  return jax.nn.sigmoid(x)


# Autodiff computes 1 - sigmoid(x), which cancels in bfloat16.
_sigmoid.defjvps(lambda dx, y, x: dx * y * jax.nn.sigmoid(-x))


@_recomputed
def gelu_tanh(x):
  """Returns gelu's tanh approximation of x [...], as google-research/bert does.

  (1 + tanh(u)) / 2 is computed as sigmoid(2 u), as XLA:GPU considers a tanh too
  expensive to recompute where it is used, and writes it to memory.
  """
  wide = x.astype(jnp.float32)
  u = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
  return x * _sigmoid((2 * u).astype(x.dtype))


@_recomputed
def silu(x):
  """Returns x * sigmoid(x) (arXiv:1606.08415, section 4) for x [...]."""
  return x * _sigmoid(x.astype(jnp.float32)).astype(x.dtype)


ACTIVATIONS = {"gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu}


def on_cpu() -> bool:
  """Returns whether the mesh in use, or else this machine, is of CPUs."""
  device = jax.sharding.get_abstract_mesh().abstract_device
  return (device or jax.devices()[0]).platform == "cpu"


def contract(x, kernel, number: int):
  """Returns [..., *features] for x [..., *inputs], kernel [*inputs, *features].

  Both are of one type, and `number` is that of the dimensions of inputs.
  """
  if not on_cpu():
    return jnp.tensordot(x, kernel, number)
  # XLA:CPU transposes kernels of more dimensions in the backward pass.
  inputs = math.prod(kernel.shape[:number])
  y = _matmul(x.reshape(-1, inputs), kernel.reshape(inputs, -1))
  return y.reshape(*x.shape[: x.ndim - number], *kernel.shape[number:])


@jax.custom_vjp
def _matmul(x, kernel):
  """Returns x @ kernel, with the gradient for CPUs.

  XLA:CPU transposes the first operand of the dot that is the kernel's gradient.
  Here that is the narrower of x and the gradient; with autodiff it is always
  the gradient, which is 5.5 times as wide in a gated MLP. For TPUs, where
  layouts are XLA's choice, autodiff's order is the better one.
  """
  return x @ kernel


def _matmul_backward(saved, grad):
  x, kernel = saved
  if x.size <= grad.size:
    return grad @ kernel.T, x.T @ grad
  # Without the barrier XLA swaps the operands to save the transpose.
  return grad @ kernel.T, jax.lax.optimization_barrier(grad.T @ x).T


_matmul.defvjp(lambda x, kernel: (x @ kernel, (x, kernel)), _matmul_backward)


def parts(x, axis: int):
  """Returns the slices of x along an axis, without it, as a list.

  On a CPU their gradients are written side by side; those of indexing would
  each be padded to the whole array, and added. Other compilers fuse that.
  """
  if not on_cpu():
    before = (slice(None),) * axis
    return [x[(*before, i)] for i in range(x.shape[axis])]
  slices = jax.lax.split(x, (1,) * x.shape[axis], axis=axis)
  return [jnp.squeeze(part, axis) for part in slices]


class Dense(nn.Module):
  """Computes x @ kernel + bias over the last `len(inputs)` dimensions of x."""

  inputs: tuple[int, ...]
  features: tuple[int, ...]
  init_stddev: float
  dtype: str
  use_bias: bool = True

  @nn.compact
  def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Returns [..., *features] for x [..., *inputs]."""
    init = nn.initializers.truncated_normal(self.init_stddev)
    kernel = self.param("kernel", init, (*self.inputs, *self.features))
    dtype = DTYPES[self.dtype]
    y = contract(x.astype(dtype), kernel.astype(dtype), len(self.inputs))
    if not self.use_bias:
      return y
    bias = self.param("bias", nn.initializers.zeros, self.features)
    shape = y.shape
    if on_cpu():  # Else XLA writes its gradient once for each number of axes.
      y, bias = y.reshape(-1, bias.size), bias.reshape(-1)
    # Added in float32, so that its gradient is summed in float32: over many
    # tokens, sums in bfloat16 are off by a few hundredths.
    return (y.astype(jnp.float32) + bias).astype(dtype).reshape(shape)


def _mean(x):
  return jnp.mean(x, axis=-1, keepdims=True)


def _zero(x):
  return jnp.zeros((), x.dtype)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _normalise(x, scale, centre, epsilon):
  """Returns (x - c) / sqrt(mean((x - c)^2) + epsilon) * scale, c = centre(x).

  For x [..., D] and scale [D], c is [..., 1]. The forward pass keeps x and two
  numbers for each row, from which the backward pass computes the gradient; with
  autodiff, XLA:GPU would also write float32 arrays. Computed in float32.
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
  # Without the barrier XLA would recompute them at each use.
  middle, rate = jax.lax.optimization_barrier(numbers)
  normed = (x.astype(jnp.float32) - middle) * rate
  inner = grad * scale
  inner = inner - centre(inner) - normed * _mean(inner * normed)
  x_grad = (rate * inner).astype(x.dtype)
  return x_grad, jnp.sum(grad * normed, axis=tuple(range(x.ndim - 1)))


_normalise.defvjp(_normalise_forward, _normalise_backward)


@jax.custom_vjp
def fork(x):
  """Returns x [...]; its gradient, which has several uses, is written once."""
  return x


fork.defvjp(
  lambda x: (x, None), lambda _, grad: (jax.lax.optimization_barrier(grad),)
)


class LayerNorm(nn.Module):
  """Layer norm (arXiv:1607.06450) over the last dimension, in float32."""

  epsilon: float
  dtype: str
  use_bias: bool = True

  @nn.compact
  def __call__(self, x: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
    """Returns x, normalised, of `dtype`."""
    scale = self.param("scale", nn.initializers.ones, x.shape[-1:])
    y = _normalise(x, scale, _mean, self.epsilon)
    if self.use_bias:
      y = y + self.param("bias", nn.initializers.zeros, x.shape[-1:])
    return y.astype(DTYPES[self.dtype])


class RMSNorm(nn.Module):
  """Division by the root mean square (arXiv:1910.07467), in float32."""

  epsilon: float
  dtype: str

  @nn.compact
  def __call__(self, x: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
    """Returns x, normalised, of `dtype`."""
    scale = self.param("scale", nn.initializers.ones, x.shape[-1:])
    y = _normalise(x, scale, _zero, self.epsilon)
    return y.astype(DTYPES[self.dtype])


class Dropout(nn.Module):
  """Sets a share of the entries to 0 and scales the others.

  The share is rounded to a multiple of 2^-32.
  """

  rate: float

  @nn.compact
  def __call__(
    self, x: Float[Array, "*B"], *, train: bool
  ) -> Float[Array, "*B"]:
    """Returns x; needs the rng "dropout" if train."""
    threshold = drop_threshold(self.rate)
    if not train or not threshold:
      return x
    return drop(x, random_bits(self.make_rng("dropout"), x.shape), threshold)
