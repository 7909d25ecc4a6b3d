"""Attention masks and positions: who sees whom, RoPE, ALiBi.

A Sight is the mask that one block's attention is given. BERT's positions are
in its embeddings; ALiBi puts them into the scores instead, and RoPE (`rotate`)
into queries and keys. Segments are contiguous: within one, columns are as far
apart as positions.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Array = Any  # jax.Array or np.ndarray.


class Sight(NamedTuple):
  """The attention mask, described; each way to attend makes its own of it.

  A token sees those of its own segment, padding being one too, and always
  itself: no row of the softmax is empty.
  """

  segment_ids: Array  # [B, L] int32.
  causal: bool = False  # It sees itself and what is left of it only,
  window: int = 0  # and window / 2 others on each side only; 0 = all.
  is_local: Array | None = None  # shape=(), bool: is that so here? None = yes.
  alibi: bool = False  # Scores fall with the distance, as `alibi` has it.
  one_text: bool = False  # Rows are promised to be one text, then padding.


def visible(sight: Sight):
  """[B, 1, L, S] bool: who sees whom, for all heads."""
  L = sight.segment_ids.shape[1]
  seen = same_segment(sight.segment_ids)
  if sight.causal:
    seen = seen & backwards(L)
  if sight.window:
    near = within(L, sight.window)
    seen = seen & (near if sight.is_local is None else near | ~sight.is_local)
  return seen


def ranges(sight: Sight):
  """(first, stop) [B, L] int32: the columns that a token sees are a range.

  That is so as segments are contiguous.
  """
  segments = sight.segment_ids
  L = segments.shape[1]
  column = jnp.arange(L)
  change = segments[:, 1:] != segments[:, :-1]
  begins = jnp.pad(change, ((0, 0), (1, 0)), constant_values=True)
  ends = jnp.pad(change, ((0, 0), (0, 1)), constant_values=True)
  first = jax.lax.cummax(jnp.where(begins, column, 0), axis=1)
  stop = jnp.where(ends, column + 1, L)
  stop = jax.lax.cummin(stop, axis=1, reverse=True)
  if sight.causal:
    stop = jnp.minimum(stop, column + 1)
  if sight.window:
    reach = sight.window // 2
    if sight.is_local is not None:
      reach = jnp.where(sight.is_local, reach, L)
    first = jnp.maximum(first, column - reach)
    stop = jnp.minimum(stop, column + reach + 1)
  return first, stop


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
