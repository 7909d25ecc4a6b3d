import math

import jax
import numpy as np
import pytest

from maskedlm.modeling.layers import ACTIVATIONS, Dense, Dropout, LayerNorm


@pytest.mark.parametrize(
  ("name", "expected"),
  [  # x = 1: Phi(1) = 0.841345; the tanh form of arXiv:1606.08415 is off by
    # 0.00015 there.
    ("gelu", [-0.158655, 0.0, 0.841345]),
    ("gelu_tanh", [-0.158808, 0.0, 0.841192]),
  ],
)
def test_gelu_by_hand(name, expected):
  ours = ACTIVATIONS[name](np.array([-1.0, 0.0, 1.0], np.float32))
  np.testing.assert_allclose(ours, expected, atol=1e-6)


def test_gelu_and_its_slope_in_the_tails():
  x = np.array([-50.0, -9.0, -5.0, 5.0, 9.0, 50.0], np.float32)
  gelu = ACTIVATIONS["gelu"]
  np.testing.assert_allclose(gelu(x), x * (x > 0), atol=2e-6)
  slope = jax.vmap(jax.grad(gelu))(x)
  np.testing.assert_allclose(slope, x > 0, atol=1e-5)


def test_layer_norm_by_hand():
  # 1, 3, 5, 7: mean 4, variance 5.
  x = np.array([[1, 3, 5, 7]], np.float32)
  params = {"scale": np.float32([1, 1, 2, 1]), "bias": np.float32([0, 0, 0, 9])}
  ours = LayerNorm(1e-12, "float32").apply({"params": params}, x)
  root = math.sqrt(5)
  expected = [[-3 / root, -1 / root, 2 / root, 9 + 3 / root]]
  np.testing.assert_allclose(ours, expected, rtol=1e-6)


def test_layer_norm_far_from_zero():
  # E[x^2] - E[x]^2 would lose all digits of the variance here.
  x = np.array([[1001, 1003, 1005, 1007]], np.float32)
  params = {"scale": np.ones(4, np.float32), "bias": np.zeros(4, np.float32)}
  ours = LayerNorm(1e-12, "float32").apply({"params": params}, 4 * x)
  expected = np.array([[-3, -1, 1, 3]]) / math.sqrt(5)
  np.testing.assert_allclose(ours, expected, rtol=1e-5)


def test_dense_contracts_several_dimensions():
  x = np.arange(12.0, dtype=np.float32).reshape(2, 2, 3)
  params = {
    "kernel": np.ones((2, 3, 5), np.float32),
    "bias": np.arange(5, dtype=np.float32),
  }
  ours = Dense((2, 3), (5,), 0.02, "float32").apply({"params": params}, x)
  np.testing.assert_allclose(ours, np.array([[15], [51]]) + np.arange(5))


def drop(rate, x, key=0):
  module = Dropout(rate)
  return np.asarray(
    module.apply({}, x, train=True, rngs={"dropout": jax.random.key(key)})
  )


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout_share_and_expectation(rate):
  x = np.ones((1000, 37), np.float32)
  ours = drop(rate, x)
  # Five standard deviations of the share of 37,000 coins.
  bound = 5 * math.sqrt(rate * (1 - rate) / x.size)
  assert np.mean(ours == 0) == pytest.approx(rate, abs=bound)
  np.testing.assert_allclose(ours[ours > 0], 1 / (1 - rate), rtol=1e-6)


def test_no_dropout():
  x = np.arange(6.0, dtype=np.float32)
  np.testing.assert_array_equal(Dropout(0.5).apply({}, x, train=False), x)
  np.testing.assert_array_equal(Dropout(0.0).apply({}, x, train=True), x)
