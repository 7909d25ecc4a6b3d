"""The bits of dropout: by definition, and random enough for their use."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maskedlm.modeling.dropout_bits import (
  drop,
  drop_threshold,
  mix,
  random_bits,
)
from maskedlm.modeling.layers import Dropout


def bits(key, shape):
  return np.asarray(jax.jit(random_bits, static_argnums=1)(key, shape))


def mix_by_hand(x):
  x ^= x >> 16
  x = x * 0x7FEB352D % 2**32
  x ^= x >> 15
  x = x * 0x846CA68B % 2**32
  return x ^ x >> 16


def test_entries_are_hashes_of_their_positions():
  key = jax.random.key(5)
  seeds = [int(x) for x in jax.random.bits(key, (3,), "uint32")]
  ours = bits(key, (3, 7, 11))
  for i, j, k in ((0, 0, 0), (2, 0, 10), (1, 6, 3)):
    start = mix_by_hand((7 * i + j) ^ seeds[0]) + seeds[1]
    start %= 2**32
    stride = mix_by_hand(start ^ seeds[2]) | 1
    assert ours[i, j, k] == mix_by_hand((start + stride * k) % 2**32)


def test_entries_below_the_threshold_are_dropped():
  count = drop_threshold(0.25)
  assert count == 2**30
  bits = jnp.array([0, 2**30 - 1, 2**30, 2**32 - 1], jnp.uint32)
  dropped = drop(jnp.full(4, 3.0), bits, count)
  assert dropped.tolist() == [0, 0, 4, 4]


def test_every_bit_depends_on_every_other():
  x = np.random.default_rng(0).integers(2**32, size=40_000, dtype=np.uint32)
  was = np.asarray(mix(x))
  for i in range(32):
    flipped = np.asarray(mix(x ^ np.uint32(1 << i))) ^ was
    shares = [np.mean(flipped >> np.uint32(j) & 1) for j in range(32)]
    # Five deviations of 40,000 coins, 0.0025 each, and the bias of the hash.
    np.testing.assert_allclose(shares, 0.5, atol=0.02)


@pytest.mark.parametrize("shape", [(40_000,), (3001, 37), (5, 3, 64, 127)])
def test_bytes_are_uniform(shape):
  for k in range(3):
    found = bits(jax.random.key(k), shape).ravel()
    for shift in (0, 8, 16, 24):
      counts = np.bincount(found >> shift & 255, minlength=256)
      expected = found.size / 256
      chi2 = np.sum((counts - expected) ** 2) / expected
      # 255 degrees of freedom: 255 +- 22.6, five deviations.
      assert 255 - 113 < chi2 < 255 + 113


@functools.partial(jax.jit, static_argnums=1)
def dropped(key, shape):
  x = jnp.ones(shape, jnp.float32)
  return Dropout(0.5).apply({}, x, train=True, rngs={"dropout": key}) == 0


def test_entries_are_independent_along_axes_and_between_keys():
  shape = (6, 5, 32, 48)
  a = np.asarray(dropped(jax.random.key(1), shape))
  # Five deviations of 46,080 coins, or slightly fewer.
  bound = 5 * 0.5 / np.sqrt(a.size * 0.8)
  for axis, lag in itertools.product(range(4), (1, 2, 4)):
    before = np.take(a, range(shape[axis] - lag), axis)
    after = np.take(a, range(lag, shape[axis]), axis)
    assert np.mean(before == after) == pytest.approx(0.5, abs=bound * 1.8)
  for other in range(2, 30):
    b = np.asarray(dropped(jax.random.key(other), shape))
    assert np.mean(a == b) == pytest.approx(0.5, abs=bound)
  layers = jax.jit(jax.vmap(lambda k: random_bits(k, (64, 48))))(
    jax.random.split(jax.random.key(1), 12)
  )
  drops = np.asarray(layers) < 2**31
  for i, j in itertools.combinations(range(12), 2):
    same = np.mean(drops[i] == drops[j])
    assert same == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(64 * 48))
