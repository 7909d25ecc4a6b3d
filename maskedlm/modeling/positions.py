"""Where tokens stand, as attention knows it: who sees whom, how far, how.

A Sight is what one block's attention is given besides the vectors. BERT's
says only who sees whom, as its embeddings know the positions; RoPE and ALiBi
put them into attention instead. Segments are contiguous: within one, columns
are as far apart as positions.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

Array = Any  # jax.Array or np.ndarray.


class Sight(NamedTuple):
  """What a token sees, and from how far."""

  visible: Array  # [B, 1, L, S] bool: who sees whom, for all heads.
  bias: Array | None = None  # [1, H, L, S] float32, added to the scores.
  rotation: tuple | None = None  # (cos, sin) [B, L, 1, K / 2], float32 each.


def same_segment(segment_ids):
  """segment_ids [B, L] -> [B, 1, L, S] bool: who sees whom, for all heads."""
  return (segment_ids[:, :, None] == segment_ids[:, None, :])[:, None]


def backwards(length: int):
  """[L, S] bool: a token sees itself and what is left of it."""
  return jnp.tri(length, dtype=bool)


def within(length: int, window: int):
  """[L, S] bool: a token sees window / 2 others on each side."""
  return _distance(length) <= window // 2


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
  return -slopes[None, :, None, None] * _distance(length).astype(jnp.float32)


def alibi_slopes(num_heads: int) -> list[float]:
  """One slope a head: 2^(-8/H), 2^(-16/H), ... 2^-8.

  For other numbers of heads than powers of 2, as the authors' code: those of
  the power below, then every other one of the power above.
  """
  below = 2 ** math.floor(math.log2(num_heads))

  def slopes(n):
    return [2 ** (-8 * (i + 1) / n) for i in range(n)]

  return slopes(below) + slopes(2 * below)[::2][: num_heads - below]


def _distance(length: int):
  column = jnp.arange(length)
  return jnp.abs(column[:, None] - column[None, :])
