"""The entropy of attention, by its definition."""

import jax
import numpy as np
import pytest

from maskedlm.modeling.attention import blockwise, layer
from maskedlm.modeling.attention.mask import AttentionMask

B, L, H, K = 2, 37, 3, 5  # Of the entropy.


@pytest.mark.parametrize(
  "options",
  [
    {},
    {"causal": True},
    {"causal": True, "right_to_left": True},
    {"window": 6},
    {"window": 6, "is_local": np.array(False)},
    {"alibi": True},
  ],
)
def test_entropy_is_that_of_the_softmax(options):
  rng = np.random.default_rng(0)
  query, key = rng.normal(size=(2, B, L, H, K)).astype(np.float32) * 2
  segments = np.repeat([[1, 2, 0], [1, 0, 0]], [15, 15, 7], axis=1)
  mask = AttentionMask(segments.astype(np.int32), **options)
  weights = jax.nn.softmax(layer.scores(query, key, mask), axis=-1)
  weights = np.asarray(weights, np.float64)
  log = np.log(np.where(weights > 0, weights, 1))
  expected = -np.sum(weights * log, axis=-1)
  found = layer.entropy(query, key, mask)
  np.testing.assert_allclose(found, expected.mean(axis=1), atol=2e-5)
  if not options.get("right_to_left"):
    found = blockwise.entropy(query, key, mask, block=8)
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_equal_scores_have_the_logarithm_of_the_count():
  zeros = np.zeros((B, L, H, K), np.float32)
  mask = AttentionMask(np.ones((B, L), np.int32), causal=True)
  expected = np.log(np.arange(L) + 1)
  found = layer.entropy(zeros, zeros, mask)
  np.testing.assert_allclose(found, np.tile(expected, (B, 1)), atol=1e-5)
