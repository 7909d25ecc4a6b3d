"""The likeliest well-formed BIO tags, in time proportional to their number.

Only I-X depends on the tag before it, which must be B-X or I-X, and no
transition has a score. So a word takes O(T) rather than the O(T^2) of a CRF
(crf.py): with 60 roles, T = 121. Dimensions: B rows, W words, n types,
T = 1 + 2 n tags in the order of bio.all_tags: O, B of all types, I of all
types.
"""

import jax
import jax.numpy as jnp

from maskedlm.modeling.task_heads.crf import FORBIDDEN, best_path


def viterbi_bio(scores, lengths):
  """Returns the well-formed tags int32 [B, W] with the highest sum of scores.

  Args:
    scores: [B, W, T].
    lengths: [B], the number of words of each row; further tags are 0.
  """
  W, T = scores.shape[1:]
  n = T // 2
  types = jnp.arange(n, dtype=jnp.int32)

  def forward(best, word):
    score, index = word
    begun, inside = best[:, 1 : n + 1], best[:, n + 1 :]
    top = jnp.max(best, axis=1, keepdims=True)
    # Which tag is the best one; an argmax is slow on XLA:CPU.
    places = jnp.where(best == top, jnp.arange(T, dtype=jnp.int32), T)
    from_top = jnp.min(places, axis=1, keepdims=True)
    new = jnp.concatenate(
      [jnp.repeat(top, n + 1, axis=1), jnp.maximum(begun, inside)], axis=1
    )
    came_from = jnp.concatenate(
      [
        jnp.repeat(from_top, n + 1, axis=1),
        jnp.where(begun >= inside, 1 + types, 1 + n + types),
      ],
      axis=1,
    )
    is_word = (index < lengths)[:, None]
    # Padding repeats the last word's state.
    came_from = jnp.where(is_word, came_from, jnp.arange(T, dtype=jnp.int32))
    return jnp.where(is_word, new + score, best), came_from

  first = scores[:, 0] + jnp.where(jnp.arange(T) > n, FORBIDDEN, 0.0)
  rest = jnp.moveaxis(scores[:, 1:], 1, 0), jnp.arange(1, W)
  best, came_from = jax.lax.scan(forward, first, rest)
  return best_path(best, came_from, lengths)
