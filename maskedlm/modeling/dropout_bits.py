"""Random bits for dropout: a hash of the key and of each entry's place.

They must be cheap, as there are B * H * L * L of them in each layer. A hash of
a dozen operations becomes part of the loop that uses it and is written nowhere;
over a mesh each device makes those of its part, the same on any mesh. JAX's
threefry takes four times as many operations for a word, and XLA:TPU writes what
is between them to memory: by the model of docs/guides/pretrain/scaling.md BERT-base's step took
1.4 times as long. rbg, a TPU's own generator, is not split over devices.
"""

import jax
import jax.numpy as jnp
import numpy as np


def random_bits(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
  """uint32, uniform, of this shape.

  Each row (of the last dimension) has a start and an odd stride, hashes of the
  key and the row's number; entry j is the hash of start + j * stride.

  Args:
    key: of jax.random; it seeds by three words that threefry makes.
    shape: of one dimension at least.
  """
  *lead, size = shape
  row = jnp.zeros((*lead, 1), jnp.uint32)
  for axis, n in enumerate(lead):
    row = row * np.uint32(n) + _iota((*lead, 1), axis)
  start, stride = _row_hash(row, *_seeds(key))
  return mix(start + stride * _iota((*lead, size), len(lead)))


def _seeds(key: jax.Array) -> jax.Array:
  """The words [3] that a key stands for here."""
  return jax.random.bits(key, (3,), jnp.uint32)


def _row_hash(row, first, second, third):
  """(start, stride) of rows by their numbers, uint32; of three seeds."""
  start = mix(row ^ first) + second
  return start, mix(start ^ third) | np.uint32(1)


def drop_threshold(rate: float) -> int:
  """Of 2^32 words, how many drop their entry."""
  return round(rate * 2**32)


def drop(x: jax.Array, words: jax.Array, count: int) -> jax.Array:
  """Zeroes the entries of x whose words are below count; scales the others."""
  left = jnp.where(words >= np.uint32(count), x, 0)
  # In float32: as a bfloat16, 1 / 0.9 is 0.16% too small.
  return (left.astype(jnp.float32) * _scale(count)).astype(x.dtype)


def _scale(count: int) -> float:
  """Of what isn't dropped: exact, so that the expectation stays."""
  return 2**32 / (2**32 - count)


def mix(x: jax.Array) -> jax.Array:
  """A permutation of the uint32 in which every bit depends on all.

  "lowbias32", from Chris Wellons' search for such: github.com/skeeto/
  hash-prospector.
  """
  for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
    x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
  return x ^ (x >> np.uint32(16))


def _iota(shape: tuple[int, ...], axis: int) -> jax.Array:
  return jax.lax.broadcasted_iota(jnp.uint32, shape, axis)
