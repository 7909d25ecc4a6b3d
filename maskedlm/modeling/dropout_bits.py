"""Random bits for dropout: a hash of the key and of each entry's position.

They must be cheap, as each layer needs B * H * L * L of them. A hash of a dozen
operations is fused into the loop that uses it and never written to memory. Each
device computes the bits of its own part; they are the same on any mesh.
JAX's threefry takes four times as many operations, and XLA:TPU writes its
intermediate results to memory: by the model of docs/guides/pretrain/scaling.md,
BERT-base's step took 1.4 times as long. rbg, a TPU's own generator, is not
split over devices.
"""

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.modeling.arrays import Array


def random_bits(key: jax.Array, shape: tuple[int, ...]) -> Array:
  """Returns uniform random uint32 of the given shape, of one dimension or more.

  Each row (of the last dimension) has a start and an odd stride, which are
  hashes of the key and the row's index; entry j is the hash of start + j *
  stride.
  """
  *lead, size = shape
  row = jnp.zeros((*lead, 1), jnp.uint32)
  for axis, n in enumerate(lead):
    row = row * np.uint32(n) + _iota((*lead, 1), axis)
  first, second, third = jax.random.bits(key, (3,), jnp.uint32)
  start = mix(row ^ first) + second
  stride = mix(start ^ third) | np.uint32(1)
  return mix(start + stride * _iota((*lead, size), len(lead)))


def drop_threshold(rate: float) -> int:
  """Returns the threshold for `drop`, given the probability of dropping."""
  return round(rate * 2**32)


def drop(x: Array, bits: Array, threshold: int) -> Array:
  """Zeroes the entries of x [...] whose bits [...] are below the threshold.

  The others are scaled by the inverse of the probability of keeping them.
  """
  kept = jnp.where(bits >= np.uint32(threshold), x, 0)
  # Exact, so that the expectation is kept, and in float32: in bfloat16, 1 / 0.9
  # is 0.16% too small.
  scale = 2**32 / (2**32 - threshold)
  return (kept.astype(jnp.float32) * scale).astype(x.dtype)


def mix(x: Array) -> Array:
  """Hashes uint32 x [...]: a permutation; each bit depends on all input bits.

  It is "lowbias32" of github.com/skeeto/hash-prospector (Chris Wellons).
  """
  for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
    x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
  return x ^ (x >> np.uint32(16))


def _iota(shape: tuple[int, ...], axis: int) -> jax.Array:
  return jax.lax.broadcasted_iota(jnp.uint32, shape, axis)
