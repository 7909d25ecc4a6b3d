"""The attention mask: which keys a query may attend to.

A Sight describes it; each implementation of attention makes its own mask of
it. Segments are contiguous: within one, columns are as far apart as positions.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from maskedlm.modeling.positions import Array, distance


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
  return distance(length) <= window // 2
