"""Positions within attention: RoPE and ALiBi.

BERT adds positions to its embeddings; ALiBi adds them to the scores instead,
and RoPE (`rotate`) rotates queries and keys by them.
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

Array = Any  # jax.Array or np.ndarray.


def rotation(positions, *, head_size: int, theta: float):
  """Returns (cos, sin) [B, L, 1, K / 2] of positions [B, L], for `rotate`.

  RoPE (arXiv:2104.09864) rotates pair i by position * theta^(-2i / K).
  """
  angle = _angles(positions, head_size, theta)
  return jnp.cos(angle), jnp.sin(angle)


def looked_up_rotation(positions, *, head_size: int, theta: float):
  """Returns what `rotation` does, from tables; NaN for positions of L or more.

  XLA:CPU computes a cosine again in each loop that it is fused into, of which
  unrolled layers have many; looking it up there is faster.
  """
  angle = _angles(np.arange(positions.shape[1]), head_size, theta)
  tables = (jnp.asarray(f(angle)) for f in (np.cos, np.sin))
  return tuple(
    table.at[positions].get(mode="fill", fill_value=np.nan) for table in tables
  )


def _angles(positions: Array, head_size: int, theta: float) -> Array:
  """Returns angles [..., 1, K / 2] float32 of positions [...]."""
  pair = np.arange(0, head_size, 2)
  frequency = np.float32(float(theta) ** (-pair / head_size))
  return positions[..., None, None].astype(np.float32) * frequency


def rotate(x, cos, sin):
  """Returns x [B, L, H, K] rotated; i and i + K / 2 are a pair (GPT-NeoX)."""
  a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
  rotated = jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
  return rotated.astype(x.dtype)


def alibi(length: int, *, num_heads: int):
  """Returns -slope * distance, [1, H, L, S] float32 (arXiv:2108.12409)."""
  slopes = np.asarray(alibi_slopes(num_heads), np.float32)
  return -slopes[None, :, None, None] * distance(length).astype(jnp.float32)


def alibi_slopes(num_heads: int) -> list[float]:
  """Returns a slope for each head: 2^(-8/H), 2^(-16/H), ... 2^-8.

  If the number of heads is not a power of 2, they are the slopes of the power
  below, then every other one of the power above, as in the authors' code.

  >>> alibi_slopes(4), alibi_slopes(3)
  ([0.25, 0.0625, 0.015625, 0.00390625], [0.0625, 0.00390625, 0.25])
  """
  below = 2 ** math.floor(math.log2(num_heads))

  def slopes(n):
    return [2 ** (-8 * (i + 1) / n) for i in range(n)]

  return slopes(below) + slopes(2 * below)[::2][: num_heads - below]


def distance(length: int):
  """Returns the distances between positions, [L, L]."""
  column = jnp.arange(length)
  return jnp.abs(column[:, None] - column[None, :])
