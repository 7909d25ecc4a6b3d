"""Measures a device's ceiling: square matmuls, and a step's matmuls alone.

For goals.py. Matrices are random, because a GPU that multiplies zeros draws
less power and is faster (894 against 788 TFLOP/s by PyTorch on an H200).
"""

import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp


def seconds_of(run: Callable, count: int) -> float:
  """Returns the seconds of a call: the median of 3 blocks of `count`.

  Half a second of calls come first, until a GPU's clock has settled.
  """
  jax.block_until_ready(run())
  began = time.perf_counter()
  while time.perf_counter() - began < 0.5:
    jax.block_until_ready(run())
  taken = []
  for _ in range(3):
    began = time.perf_counter()
    for _ in range(count):
      result = run()
    jax.block_until_ready(result)
    taken.append((time.perf_counter() - began) / count)
  return statistics.median(taken)


def ceiling() -> float:
  """Returns FLOP/s on square matrices: bfloat16, on a CPU float32."""
  on_cpu = jax.default_backend() == "cpu"
  size, dtype, count = (
    (512, jnp.float32, 10) if on_cpu else (8192, jnp.bfloat16, 150)
  )
  x = jax.random.normal(jax.random.key(0), (size, size), dtype)
  multiply = jax.jit(lambda x, y: x @ y)
  return 2 * size**3 / seconds_of(lambda: multiply(x, x), count)


def bare_step(shape, num_predictions: int, dtype: str, count: int) -> float:
  """Returns the seconds of a step's matmuls alone, forward and backward.

  Args:
    shape: with layers, width, heads, length, rows and vocab.
    num_predictions: P, the predictions of a row.
    dtype: of weights and activations.
    count: calls of a block, see seconds_of.
  """
  D, H, L, B = shape.width, shape.heads, shape.length, shape.rows
  K, P, V = (
    D // H,
    num_predictions,
    -(-shape.vocab // 128) * 128,
  )  # Padded like maskedlm's.
  keys = iter(jax.random.split(jax.random.key(0), 4 * shape.layers + 4))

  def random(inputs: int, *outputs: int):
    # Keeps the variance from layer to layer.
    x = jax.random.normal(next(keys), (inputs, *outputs), dtype)
    return x * inputs**-0.5

  layers = [
    (random(D, 3 * D), random(D, D), random(D, 4 * D), random(4 * D, D))
    for _ in range(shape.layers)
  ]
  head = random(D, D), random(D, V)
  x = jax.random.normal(next(keys), (B * L, D), dtype)

  def forward(layers, head, x):
    for qkv, out, up, down in layers:
      q, k, v = (
        part.reshape(B, L, H, K) for part in jnp.split(x @ qkv, 3, axis=1)
      )
      scores = jnp.einsum("BLHK,BSHK->BHLS", q, k) * (K * L) ** -0.5
      y = jnp.einsum("BHLS,BSHK->BLHK", scores, v)
      x = y.reshape(B * L, D) @ out @ up @ down
    x = x.reshape(B, L, D)[:, :P].reshape(B * P, D)
    return x @ head[0] @ head[1]

  @jax.jit
  def run(layers, head, x, gradient):
    logits, backward = jax.vjp(forward, layers, head, x)
    return logits, backward(gradient)

  gradient = jax.random.normal(next(keys), (B * P, V), dtype)
  return seconds_of(lambda: run(layers, head, x, gradient), count)
