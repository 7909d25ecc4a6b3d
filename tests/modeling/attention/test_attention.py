"""The attention layer, its mask and its entropy, by hand and against numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference
from maskedlm.modeling.attention import blockwise, layer
from maskedlm.modeling.attention.layer import Attention
from maskedlm.modeling.attention.mask import (
  AttentionMask,
  causal,
  to_array,
  within,
)


def test_mask_array_by_hand():
  allowed = to_array(AttentionMask(jnp.array([[1, 1, 2, 0, 0]])))
  assert allowed.shape == (1, 1, 5, 5)
  expected = np.array(
    [
      [1, 1, 0, 0, 0],
      [1, 1, 0, 0, 0],
      [0, 0, 1, 0, 0],
      [0, 0, 0, 1, 1],
      [0, 0, 0, 1, 1],
    ]
  )
  np.testing.assert_array_equal(allowed[0, 0], expected)


def test_causal_and_within_by_hand():
  np.testing.assert_array_equal(causal(3), [[1, 0, 0], [1, 1, 0], [1, 1, 1]])
  np.testing.assert_array_equal(
    within(4, 2),
    [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]],
  )


@pytest.mark.parametrize("train", [True, False])  # The latter by softmax_sum.
def test_equals_plain_numpy(train):
  # 3 heads of 8; segments of odd lengths, one of them a single token.
  cfg = encoder_reference.config()
  segments = np.array([[1, 1, 1, 1, 2, 3, 3], [1, 1, 1, 0, 0, 0, 0]])
  x = np.random.default_rng(0).standard_normal((2, 7, 24), np.float32)
  module = Attention(3, 0.0, 0.02, "float32")
  mask = AttentionMask(segments)
  flat = x.reshape(14, 24)
  made = module.init(jax.random.key(0), flat, mask, train=False)
  params = encoder_reference.randomise(made["params"])
  ours = module.apply({"params": params}, flat, mask, train=train)
  expected = [
    encoder_reference.attention(
      row, encoder_reference.as_float64(params), cfg, of
    )
    for row, of in zip(np.float64(x), segments, strict=True)
  ]
  np.testing.assert_allclose(ours.reshape(2, 7, 24), expected, atol=1e-5)


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
