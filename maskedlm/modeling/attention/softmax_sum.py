"""Sums of values by a softmax's weights, in as few passes as XLA:CPU allows."""

import jax
import jax.numpy as jnp

from maskedlm.modeling.arrays import Array, Float


@jax.jit  # The export to ONNX knows it by its name.
def softmax_sum(
  scores: Float[Array, "B H L S"], values: Float[Array, "B H S K"]
) -> Float[Array, "B H L K"]:
  """Returns softmax(scores) @ values, of the values' type.

  The sums are divided instead of the weights, of which there are S / K times as
  many. The barrier keeps XLA:CPU from one loop of softmax and sum, with which
  attention takes 1.6 times as long (64 rows of 56 tokens, 12 heads of 32).
  """
  return _dropped_sum(scores, values, 1.0)[0]


@jax.custom_vjp
def dropped_sum(
  scores: Float[Array, "B H L S"],
  values: Float[Array, "B H S K"],
  kept: Float[Array, "B H L S"],
) -> Float[Array, "B H L K"]:
  """Returns (softmax(scores) * kept) @ values, of the values' type.

  The softmax's gradient needs the sum of each row of weights times their
  gradient. It is that of the result times its gradient (arXiv:2205.14135,
  appendix B.4), so the backward pass reads the weights only once.
  """
  return _dropped_sum(scores, values, kept)[0]


def _dropped_sum(scores, values, kept):
  weights = jnp.exp(scores - jnp.max(scores, axis=-1, keepdims=True))
  weights = jax.lax.optimization_barrier(weights)
  total = jnp.sum(weights, axis=-1, keepdims=True)
  dropped = (weights * kept).astype(values.dtype)
  summed = (dropped @ values / total).astype(values.dtype)
  return summed, (weights, dropped, total, summed, values)


def _dropped_sum_backward(saved, grad):
  weights, dropped, total, summed, values = saved
  grad = grad / total
  inner = jnp.sum(grad * summed, axis=-1, keepdims=True)
  grad = jax.lax.optimization_barrier(grad.astype(values.dtype))
  values_grad = dropped.swapaxes(2, 3) @ grad
  dropped_grad = (grad @ values.swapaxes(2, 3)).astype(jnp.float32)
  return dropped * dropped_grad - weights * inner, values_grad, None


dropped_sum.defvjp(_dropped_sum, _dropped_sum_backward)
