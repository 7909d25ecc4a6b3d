"""Rankings joined by standardised scores, by hand."""

import numpy as np

from maskedlm.inference import fusion


def test_by_hand():
  """[0, 0, 3] is [-1, -1, 2] / sqrt(2); [4, 2, 0] is [2, 0, -2] / sqrt(8/3)."""
  one, two = np.array([0, 0, 3.0]), np.array([4, 2, 0.0])
  expected = np.array([-1, -1, 2]) / 2**0.5 + np.array([2, 0, -2]) * 0.375**0.5
  np.testing.assert_allclose(fusion.fused([one, two]), expected)
  np.testing.assert_allclose(fusion.fused([one * 7 + 3, two]), expected)


def test_a_ranking_without_a_difference_says_nothing():
  one, two = np.array([0.5, 0.7, 0.1], np.float32), np.zeros(3, np.float32)
  x = fusion.fused([one, two])
  assert np.argsort(-x).tolist() == [1, 0, 2] and np.isfinite(x).all()
  np.testing.assert_allclose(x, fusion.fused([one]))
