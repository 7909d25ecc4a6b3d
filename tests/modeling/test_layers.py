"""Activations, norms, dense layers and dropout by hand."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maskedlm.modeling import layers
from maskedlm.modeling.layers import (
  ACTIVATIONS,
  DTYPES,
  Dense,
  Dropout,
  LayerNorm,
  RMSNorm,
  fork,
)


def test_gelu_and_its_slope_in_the_tails():
  x = np.array([-50.0, -9.0, -5.0, 5.0, 9.0, 50.0], np.float32)
  gelu = ACTIVATIONS["gelu"]
  np.testing.assert_allclose(gelu(x), x * (x > 0), atol=2e-6)
  slope = jax.vmap(jax.grad(gelu))(x)
  np.testing.assert_allclose(slope, x > 0, atol=1e-5)


def test_gelu_tanh_and_its_slope_are_the_formulas():
  # With tanh in float64: 1 + tanh in float32 loses the digits of the left tail.
  x = np.linspace(-9, 9, 77)
  inner = np.sqrt(2 / np.pi)
  t = np.tanh(inner * (x + 0.044715 * x**3))
  ours, narrow = ACTIVATIONS["gelu_tanh"], np.float32(x)
  np.testing.assert_allclose(ours(narrow), x * (1 + t) / 2, atol=1e-6)
  slope = (1 + t) / 2 + x * (1 - t**2) / 2 * inner * (1 + 0.134145 * x**2)
  found = jax.vmap(jax.grad(ours))(narrow)
  # 1 - sigmoid is exact to 6e-8, and is multiplied by x times 2 u' = 5 x 5.
  np.testing.assert_allclose(found, slope, atol=2e-6)
  extremes = np.array([-1e4, 1e4], jnp.bfloat16)
  np.testing.assert_array_equal(ours(extremes), extremes * (extremes > 0))
  np.testing.assert_array_equal(jax.vmap(jax.grad(ours))(extremes), [0, 1])


def test_gelu_in_bfloat16_keeps_its_left_tail_and_slope():
  x = jnp.linspace(-4, -0.5, 57, dtype=jnp.bfloat16)
  gelu, wide = ACTIVATIONS["gelu"], np.asarray(x, np.float32)
  # gelu(-2) is -0.0455; with 1 + erf in bfloat16 it would be -0.0469.
  exact = jax.vmap(gelu)(wide)
  np.testing.assert_allclose(np.float32(gelu(x)), exact, rtol=0.008)
  slope = np.float32(jax.vmap(jax.grad(gelu))(x))
  exact = jax.vmap(jax.grad(gelu))(wide)
  np.testing.assert_allclose(slope, exact, atol=2e-3)
  # With sigmoid * (1 - sigmoid) in bfloat16 it would be off by 0.027.
  x = jnp.linspace(-4, 4, 513, dtype=jnp.bfloat16)
  slope = jax.vmap(jax.grad(ACTIVATIONS["gelu_tanh"]))
  exact = slope(np.asarray(x, np.float32))
  np.testing.assert_allclose(np.float32(slope(x)), exact, atol=0.01)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_silu_and_its_slope_equal_pytorch_s(dtype):
  torch = pytest.importorskip("torch")
  x = torch.linspace(-9, 9, 77, dtype=torch.float64)
  x = x.to(getattr(torch, dtype)).double().requires_grad_()
  theirs = torch.nn.functional.silu(x)
  theirs.sum().backward()
  silu, narrow = ACTIVATIONS["silu"], jnp.asarray(x.detach().numpy(), dtype)
  tolerance = {"float32": 1e-6, "bfloat16": 0.01}[dtype]
  np.testing.assert_allclose(
    np.float32(silu(narrow)), theirs.detach(), atol=tolerance, rtol=tolerance
  )
  slope = np.float32(jax.vmap(jax.grad(silu))(narrow))
  np.testing.assert_allclose(slope, x.grad, atol=tolerance)


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "silu"])
def test_activations_keep_only_their_input(name):
  x = jnp.ones((5, 7))
  _, pull = jax.vjp(ACTIVATIONS[name], x)
  kept = [leaf.shape for leaf in jax.tree.leaves(pull)]
  assert kept.count(x.shape) == 1


def test_layer_norm_by_hand():
  # 1, 3, 5, 7: mean 4, variance 5.
  x = np.array([[1, 3, 5, 7]], np.float32)
  params = {"scale": np.float32([1, 1, 2, 1]), "bias": np.float32([0, 0, 0, 9])}
  ours = LayerNorm(1e-12, "float32").apply({"params": params}, x)
  root = math.sqrt(5)
  expected = [[-3 / root, -1 / root, 2 / root, 9 + 3 / root]]
  np.testing.assert_allclose(ours, expected, rtol=1e-6)
  # E[x^2] - E[x]^2 would lose all digits of the variance here.
  plain = {"scale": np.ones(4, np.float32), "bias": np.zeros(4, np.float32)}
  ours = LayerNorm(1e-12, "float32").apply({"params": plain}, 4 * (x + 1000))
  np.testing.assert_allclose(ours, (x - 4) / root, rtol=1e-5)


def plain_norm(params, x, name):
  """Returns LayerNorm or RMSNorm by their definitions, for autodiff."""
  x = x - x.mean(-1, keepdims=True) if name == "layer" else x
  y = x / jnp.sqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5)
  return y * params["scale"] + params.get("bias", 0)


def rounded_norm(params, x, name):
  """Returns plain_norm computed in float32, in x's type."""
  return plain_norm(params, x.astype(jnp.float32), name).astype(x.dtype)


def slopes(norm, params, x, towards):
  """Returns the gradients of params and x, for those of norm(params, x)."""

  @jax.jit
  def pull(params, x, towards):
    return jax.tree.leaves(jax.vjp(norm, params, x)[1](towards))

  return [np.asarray(leaf) for leaf in pull(params, x, towards)]


def norm_of(name, dtype, use_bias):
  """Returns (params, x) -> normalised x [3, 7, 33], and values of both."""
  rng = np.random.default_rng(5)
  x = jnp.asarray(3 * rng.normal(size=(3, 7, 33)) + 2, DTYPES[dtype])
  params = {"scale": jnp.asarray(rng.normal(size=33), jnp.float32)}
  if use_bias:
    params["bias"] = jnp.asarray(rng.normal(size=33), jnp.float32)
  make = {
    "layer": lambda: LayerNorm(1e-5, dtype, use_bias),
    "rms": lambda: RMSNorm(1e-5, dtype),
  }[name]
  towards = jnp.asarray(rng.normal(size=x.shape), x.dtype)
  return lambda params, x: make().apply({"params": params}, x), (
    params,
    x,
    towards,
  )


NORMS = [("layer", True), ("layer", False), ("rms", False)]


@pytest.mark.parametrize(("name", "use_bias"), NORMS)
def test_gradients_of_norms_equal_the_formula(name, use_bias):
  norm, inputs = norm_of(name, "float32", use_bias)
  ours = slopes(jax.checkpoint(norm), *inputs)
  with jax.enable_x64(True):
    exact = [jax.tree.map(lambda a: a.astype(np.float64), i) for i in inputs]
    expected = slopes(lambda *args: plain_norm(*args, name), *exact)
  for a, b in zip(ours, expected, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "use_bias"), NORMS)
def test_gradients_of_norms_in_bfloat16_are_as_exact_as_autodiff(
  name, use_bias
):
  norm, inputs = norm_of(name, "bfloat16", use_bias)
  ours = slopes(norm, *inputs)
  autodiffs = slopes(lambda *args: rounded_norm(*args, name), *inputs)
  with jax.enable_x64(True):
    exact = [jax.tree.map(lambda a: a.astype(np.float64), i) for i in inputs]
    expected = slopes(lambda *args: plain_norm(*args, name), *exact)
  for a, b, true in zip(ours, autodiffs, expected, strict=True):
    assert a.dtype == b.dtype
    bound = 1.1 * np.abs(b.astype(np.float64) - true).mean() + 1e-6
    assert np.abs(a.astype(np.float64) - true).mean() < bound


def test_gradients_of_vmapped_norms():
  norm, (params, x, towards) = norm_of("layer", "float32", True)

  def x_slope(x, towards):
    return jax.vjp(norm, params, x)[1](towards)[1]

  many = jax.jit(jax.vmap(x_slope))(x, towards)
  _, _, whole = slopes(norm, params, x, towards)
  np.testing.assert_allclose(many, whole, rtol=1e-5, atol=1e-5)


def test_fork_is_the_identity():
  y, pull = jax.vjp(jax.jit(fork), jnp.float32([[1, -2, 3]]))
  np.testing.assert_array_equal(y, [[1, -2, 3]])
  np.testing.assert_array_equal(pull(jnp.float32([[4, 0, 5]]))[0], [[4, 0, 5]])


def test_gradient_of_a_bias_in_bfloat16_is_exact():
  # 1,001 tokens of slope 3. Bfloat16s from 2,048 on are 16 apart, so adding 3
  # changes nothing.
  dense = Dense((1,), (1,), 0.02, "bfloat16")
  params = dense.init(jax.random.key(0), jnp.zeros((1, 1)))
  x = jnp.zeros((1001, 1), jnp.bfloat16)
  y, pull = jax.vjp(lambda params: dense.apply(params, x), params)
  assert y.dtype == jnp.bfloat16
  (slopes,) = pull(jnp.full_like(y, 3))
  assert slopes["params"]["bias"] == 3003


def drop(rate, x, key=0):
  module = Dropout(rate)
  return np.asarray(
    module.apply({}, x, train=True, rngs={"dropout": jax.random.key(key)})
  )


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout_share_and_expectation(rate):
  x = np.ones((1000, 37), np.float32)
  ours = drop(rate, x)
  # Five standard deviations of the share of 37,000 entries.
  bound = 5 * math.sqrt(rate * (1 - rate) / x.size)
  assert np.mean(ours == 0) == pytest.approx(rate, abs=bound)
  np.testing.assert_allclose(ours[ours > 0], 1 / (1 - rate), rtol=1e-6)


def test_dropout_in_bfloat16_keeps_the_expectation():
  # 1 / 0.9 = 1.1111 is 1.1094 as a bfloat16, 0.16% less.
  x = jax.random.uniform(jax.random.key(1), (400, 500), minval=1, maxval=2)
  x = x.astype(jnp.bfloat16)
  y = Dropout(0.1).apply({}, x, train=True, rngs={"dropout": jax.random.key(2)})
  x, y = np.float64(x), np.float64(y)
  assert y.sum() / x[y > 0].sum() == pytest.approx(1 / 0.9, rel=2e-4)


def test_no_dropout():
  x = np.arange(6.0, dtype=np.float32)
  np.testing.assert_array_equal(Dropout(0.5).apply({}, x, train=False), x)
  np.testing.assert_array_equal(Dropout(0.0).apply({}, x, train=True), x)


@pytest.mark.parametrize(
  ("tokens", "inputs", "features"),
  [
    ((7,), (3,), (11,)),  # The input is the narrower one,
    ((7,), (11,), (3,)),  # or the gradient is.
    ((2, 7), (2, 4), (3, 1)),
  ],
  ids=str,
)
def test_gradients_of_dense_equal_autodiff(tokens, inputs, features):
  keys = jax.random.split(jax.random.key(0), 3)
  x = jax.random.normal(keys[0], (*tokens, *inputs))
  kernel = jax.random.normal(keys[1], (*inputs, *features))
  grad = jax.random.normal(keys[2], (*tokens, *features))
  dense = Dense(inputs, features, 0.02, "float32", use_bias=False)

  def run(function):
    y, backward = jax.vjp(function, x, kernel)
    return y, *backward(grad)

  ours, theirs = jax.jit(
    lambda: (
      run(lambda x, kernel: dense.apply({"params": {"kernel": kernel}}, x)),
      run(lambda x, kernel: jnp.tensordot(x, kernel, axes=len(inputs))),
    )
  )()
  for a, b in zip(ours, theirs, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_parts_are_slices_whose_gradient_is_written_once():
  x = jnp.arange(2.0 * 3 * 5).reshape(2, 3, 5)
  for i, part in enumerate(layers.parts(x, axis=1)):
    np.testing.assert_array_equal(part, x[:, i])

  def product(x):
    a, b, c = layers.parts(x, axis=1)
    return (a * b + c).sum()

  made = jax.grad(product)(x)
  expected = jnp.stack([x[:, 1], x[:, 0], jnp.ones((2, 5))], axis=1)
  np.testing.assert_array_equal(made, expected)
  text = str(jax.make_jaxpr(jax.grad(product))(x))
  assert "concatenate" in text and " pad[" not in text
