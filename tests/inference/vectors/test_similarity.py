"""Each measure against plain Python, and against numbers by hand."""

import math

import numpy as np
import pytest

from maskedlm.inference.vectors import similarity

HALF = math.sqrt(0.5)


def vectors(n=9, d=5, seed=0):
  x = np.random.default_rng(seed).standard_normal((n, d)) + 0.5
  x[:, 3] *= 7  # A rogue dimension.
  return x.astype(np.float32)


def cosine(u, v):
  dot = sum(float(a) * float(b) for a, b in zip(u, v, strict=True))
  lengths = [math.sqrt(sum(float(a) ** 2 for a in w)) for w in (u, v)]
  return dot / (lengths[0] * lengths[1])


def test_cosine():
  x, y = vectors(seed=1), vectors(seed=2)
  expected = [cosine(u, v) for u, v in zip(x, y, strict=True)]
  np.testing.assert_allclose(similarity.cosine(x, y), expected, rtol=1e-12)
  by_hand = similarity.cosine(np.array([3.0, 4]), np.array([4.0, 3]))
  assert by_hand == pytest.approx(0.96)
  assert similarity.cosine(np.zeros(3), np.ones(3)) == 0
  assert similarity.cosine(x[:, None], y[None]).shape == (9, 9)


def test_anisotropy_by_hand():
  # Cosines 0, 0.71, 0.71, whatever the lengths.
  x = np.array([[2.0, 0], [0, 5], [3, 3]])
  assert similarity.anisotropy(x) == pytest.approx(2 * HALF / 3)
  np.testing.assert_allclose(similarity.contributions(x), [HALF / 3, HALF / 3])
  one_way = np.array([[1.0, 2], [2, 4], [3, 6]])
  assert similarity.anisotropy(one_way) == pytest.approx(1)
  np.testing.assert_allclose(similarity.contributions(one_way), [0.2, 0.8])
  opposite = np.array([[1.0, 0], [-1, 0]])
  assert similarity.anisotropy(opposite) == pytest.approx(-1)


def test_rogue_dimensions():
  x = vectors()
  x[:, 1] += 40  # A large constant that all vectors share.
  (first, share), (second, _) = similarity.rogue_dimensions(x, 2)
  assert first == 1 and second in (0, 2, 3, 4)
  expected = similarity.contributions(x)[1] / similarity.anisotropy(x)
  assert share == pytest.approx(expected) and share > 0.9
  left = np.delete(x, [1, 3], axis=-1)
  assert similarity.anisotropy(left) < similarity.anisotropy(x)
