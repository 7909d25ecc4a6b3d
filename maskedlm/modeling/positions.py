"""Positions inside attention: RoPE and ALiBi.

BERT's positions are in its embeddings; ALiBi puts them into the scores
instead, and RoPE (`rotate`) into queries and keys.
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

Array = Any  # jax.Array or np.ndarray.


def rotation(positions, *, head_size: int, theta: float):
  """(cos, sin) [B, L, 1, K / 2] of positions [B, L], for `rotate`.

  RoPE (arXiv:2104.09864): pair i turns by position * theta^(-2i / K).
  """
  pair = np.arange(0, head_size, 2)
  frequency = np.float32(float(theta) ** (-pair / head_size))
  angle = positions[..., None, None].astype(jnp.float32) * frequency
  return jnp.cos(angle), jnp.sin(angle)


def rotate(x, cos, sin):
  """Turns x [B, L, H, K]; i and i + K / 2 are a pair, as in GPT-NeoX."""
  a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
  turned = jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
  return turned.astype(x.dtype)


def alibi(length: int, *, num_heads: int):
  """[1, H, L, S] float32: -slope * distance (arXiv:2108.12409), both ways."""
  slopes = np.float32(alibi_slopes(num_heads))
  return -slopes[None, :, None, None] * distance(length).astype(jnp.float32)


def alibi_slopes(num_heads: int) -> list[float]:
  """One slope a head: 2^(-8/H), 2^(-16/H), ... 2^-8.

  For other numbers of heads than powers of 2, as the authors' code: those of
  the power below, then every other one of the power above.
  """
  below = 2 ** math.floor(math.log2(num_heads))

  def slopes(n):
    return [2 ** (-8 * (i + 1) / n) for i in range(n)]

  return slopes(below) + slopes(2 * below)[::2][: num_heads - below]


def distance(length: int):
  column = jnp.arange(length)
  return jnp.abs(column[:, None] - column[None, :])
