"""Counter-based randomness: fixed values, uniformity, bijections."""

import numpy as np
import pytest

from maskedlm.data import hashing

SIZES = [1, 2, 3, 7, 1000, 65537]


def test_bits_are_the_chain_of_splitmix64_finalizers():
  # In plain integers: SplitMix64 seeded with 0 gives 0xE220A8397B1DCDAF first
  # (Vigna's reference), which is the finalizer of 0 + golden.
  mask = (1 << 64) - 1

  def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)

  golden = 0x9E3779B97F4A7C15
  assert int(hashing.bits(0)) == mix(golden) == 0xE220A8397B1DCDAF
  first = mix((5 + golden) & mask)
  second = mix(((first ^ 11) + golden) & mask)
  assert int(hashing.bits(5, 11)) == second


def test_bits_broadcast_and_are_those_of_single_calls():
  epoch, row = np.arange(3)[:, None], np.arange(5)
  together = hashing.bits(9, "use", epoch, row)
  assert together.shape == (3, 5) and together.dtype == np.uint64
  for e in range(3):
    for r in range(5):
      assert together[e, r] == hashing.bits(9, "use", e, r)
  assert hashing.bits(9).shape == ()


def test_every_bit_is_fair_and_flips_with_half_the_probability():
  n = 40_000
  x = np.arange(n)
  a, b = hashing.bits(3, x), hashing.bits(3, x + 1)
  c = hashing.bits(4, x)
  sigma = 0.5 / np.sqrt(n)
  for words in (a, a ^ b, a ^ c):
    shift = np.arange(64, dtype=np.uint64)
    ones = ((words[:, None] >> shift) & np.uint64(1)).mean(0)
    assert np.abs(ones - 0.5).max() < 5 * sigma  # Largest of 64: 5 sigma.


def test_uniform_and_randint_are_uniform():
  n = 100_000
  u = hashing.uniform(7, "u", np.arange(n))
  assert u.min() >= 0 and u.max() < 1
  assert abs(u.mean() - 0.5) < 4 * np.sqrt(1 / 12 / n)
  for high in (1, 2, 7, 100):
    draws = hashing.randint(high, 7, "r", np.arange(n))
    assert draws.dtype == np.int64
    counts = np.bincount(draws, minlength=high)
    assert len(counts) == high
    chi2 = np.sum((counts - n / high) ** 2 / (n / high))
    # chi2 has mean high - 1 and variance 2 * (high - 1).
    assert chi2 <= high - 1 + 4 * np.sqrt(2 * (high - 1))


def test_coin_flips_count_the_leading_bits():
  word = [int(hashing.bits(6, i)) for i in range(3)]
  flips = "".join(f"{w:064b}" for w in word)
  counts = np.arange(193)
  heads = hashing.coin_flips(counts, 6)
  assert [flips[:c].count("1") for c in counts] == heads.tolist()


@pytest.mark.parametrize("size", SIZES)
def test_permute_is_a_bijection(size):
  for seed in range(3):
    out = hashing.permute(np.arange(size), size, hashing.bits(seed))
    assert out.dtype == np.int64
    np.testing.assert_array_equal(np.sort(out), np.arange(size))


@pytest.mark.parametrize("size", [1000, 65537])
def test_permute_looks_random(size):
  i = np.arange(size)
  out = hashing.permute(i, size, hashing.bits(0, "order"))
  # The correlation of i and out, and of neighbours, has sigma 1/sqrt(size).
  assert abs(np.corrcoef(i, out)[0, 1]) < 4 / np.sqrt(size)
  assert abs(np.corrcoef(out[:-1], out[1:])[0, 1]) < 4 / np.sqrt(size)
  # Fixed points are Poisson(1): P(more than 8) is 1e-6.
  assert np.sum(out == i) <= 8
  # Neighbours stay neighbours about twice (Poisson(2)), either way round.
  assert np.sum(np.abs(np.diff(out)) == 1) <= 12
  # The first tenth is spread evenly: hypergeometric in 10 equal bins.
  tenth = np.bincount(out[: size // 10] * 10 // size, minlength=10)
  assert np.abs(tenth - size / 100).max() < 4.5 * np.sqrt(size / 100)


def test_permute_seeks_and_mixes_keys():
  size = 12_345
  key = hashing.bits(0, np.arange(2))
  whole = [hashing.permute(np.arange(size), size, k) for k in key]
  index = np.array([12_344, 0, 77, 77])
  which = np.array([0, 1, 1, 0])
  some = hashing.permute(index, size, key[which])
  assert some.tolist() == [
    whole[w][i] for w, i in zip(which, index, strict=True)
  ]
  large = hashing.permute(np.array([0, 10**12 - 1]), 10**12, key[0])
  assert large.max() < 10**12 and large[0] != large[1]
