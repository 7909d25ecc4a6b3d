"""The attention mask: which keys a query attends to.

An AttentionMask describes it, and each implementation of attention derives its
own form. Segments are contiguous, so two columns of one segment are as far
apart as their positions.
"""

from typing import NamedTuple

import jax.numpy as jnp

from maskedlm.modeling.arrays import Array, Bool, Float, Int, Size
from maskedlm.modeling.positions import distance


class AttentionMask(NamedTuple):
  """Describes the attention mask.

  A token attends to the tokens of its own segment (padding is a segment too),
  always including itself, so that no row of the softmax is empty.
  """

  segment_ids: Int[Array, "B L"]
  # [B]: the rows that `causal` applies to, others read both sides; None: all.
  causal_rows: Bool[Array, " B"] | None = None
  causal: bool = False  # A token attends only to itself and to its left,
  right_to_left: bool = False  # or, if this is set too, to its right.
  window: int = 0  # At most window / 2 tokens on each side; 0 for no limit.
  is_local: Bool[Array, ""] | None = None  # Window applies; None: True.
  alibi: bool = False  # Subtract from the scores by distance (positions.alibi).
  # Queries and keys [R, H, K] of distances (positions.distance_rows), which the
  # scores have terms of; None for none.
  relative: tuple[Float[Array, "R H K"], Float[Array, "R H K"]] | None = None
  one_text: bool = False  # Every row is known to be one text, then padding.


def to_array(mask: AttentionMask) -> Bool[Array, "B 1 L S"]:
  """Returns the mask: query L may attend to key S."""
  ids, L = mask.segment_ids, mask.segment_ids.shape[1]
  allowed = (ids[:, :, None] == ids[:, None, :])[:, None]  # Of one segment.
  if mask.causal:
    before = causal(L).T if mask.right_to_left else causal(L)
    if mask.causal_rows is not None:
      before = before | ~mask.causal_rows[:, None, None, None]
    allowed = allowed & before
  if mask.window:
    near = within(L, mask.window)
    if mask.is_local is not None:
      near = near | ~mask.is_local
    allowed = allowed & near
  return allowed


def causal(length: Size) -> Bool[Array, "L L"]:
  """Returns whether the key is the query itself or to its left."""
  return jnp.tri(length, dtype=bool)


def within(length: Size, window: int) -> Bool[Array, "L L"]:
  """Returns whether the key is at most window / 2 tokens away."""
  return distance(length) <= window // 2
