"""Finds the best answers of a row: spans by the scores of their two ends."""

import jax.numpy as jnp
from jax import lax

MASKED = -1e9  # The score of a forbidden position; finite, to avoid NaN.


def best_spans(start, end, *, context, kept, max_length: int, count: int):
  """Returns the spans with the largest start + end score, out of all spans.

  run_squad.py compares only pairs of a row's 20 best starts and ends, and so
  can miss a good span whose ends are not among them.

  Args:
    start, end: [B, L] scores of each position.
    context: [B, 2], the positions (end exclusive) that an answer lies in.
    kept: [B, 2], those that an answer begins in.
    max_length: the largest number of positions in a span.
    count: the largest number of spans to return, P.

  Returns:
    (scores float32 [B, P], the best first, about MASKED where there are fewer;
    spans int32 [B, P, 2], their first and last position).
  """
  B, L = start.shape
  W = min(max_length, L)
  start = jnp.where(positions_within(kept, L), start, MASKED)
  end = jnp.where(positions_within(context, L), end, MASKED)
  end = jnp.pad(end, ((0, 0), (0, W)), constant_values=MASKED)
  ends = end[:, jnp.arange(L)[:, None] + jnp.arange(W)]  # [B, L, W].
  scores = (start[:, :, None] + ends).reshape(B, L * W)
  scores, places = lax.top_k(scores, min(count, L * W))
  first = places // W
  return scores, jnp.stack([first, first + places % W], axis=-1)


def positions_within(bounds, length: int):
  """Returns a mask [B, L] of the positions within bounds [B, 2]."""
  places = jnp.arange(length)
  return (bounds[:, :1] <= places) & (places < bounds[:, 1:])
