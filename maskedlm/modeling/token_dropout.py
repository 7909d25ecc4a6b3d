"""ESM-2's token dropout: [MASK] has no vector, and the others make up for it.

As in facebookresearch/esm's esm2.py, with the share that its training masks.
"""

import jax
import jax.numpy as jnp

from maskedlm.modeling.arrays import Array, Float, Int

_KEPT = 1 - 0.15 * 0.8  # Of a sequence's tokens, in ESM-2's training.


def token_scale(
  input_ids: Int[Array, "B L"],
  segment_ids: Int[Array, "B L"],
  mask_id: int,
  *,
  one_text: bool,
) -> Float[Array, "B L"]:
  """Returns the factor of each token's vector, 0 for [MASK].

  The others' is _KEPT over the share of the segment's tokens that aren't
  [MASK], so that the sum of a segment is about as large whatever is masked. If
  one_text, each row is a single segment, then padding.
  """

  def count(mask):
    if one_text:
      return jnp.sum(mask & (segment_ids > 0), axis=1, keepdims=True)
    groups = input_ids.shape[1] + 1  # Segments count from 1.
    total = jax.vmap(
      lambda x, ids: jax.ops.segment_sum(x, ids, num_segments=groups)[ids]
    )
    return total(mask.astype(jnp.int32), segment_ids)

  masked = input_ids == mask_id
  size = count(jnp.ones_like(masked))
  scale = _KEPT * size / jnp.maximum(size - count(masked), 1)
  return jnp.where(masked, 0.0, scale)
