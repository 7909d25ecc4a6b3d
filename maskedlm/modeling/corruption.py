"""What is hidden from the model, and by what: choose, then replace.

Pure functions on the whole global batch, inside the jitted step, from a key:
the masks are the same on any number of devices and of accumulation steps. An
objective composes one way to choose slots [B, P] with one way to replace:

  positions, weights = choose_tokens(key, ...)
  input_ids, labels = replace_tokens(key, input_ids, positions, weights, ...)

Shapes are static: P slots for each row, of which those beyond what the row
gets have position 0, weight 0 and label 0 (recipes.md, google-research/bert).
"""

import fractions
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.config import ConfigError

Array = Any  # jax.Array or np.ndarray.


def count_slots(rate: float, length: int, *, max_predictions: int) -> int:
  """P for rows of `length` tokens; max_predictions=0 is ceil(rate * length).

  Raises:
    ConfigError: the rate is not in (0, 1], or max_predictions is too small
      for a row without padding.
  """
  if not 0 < rate <= 1:
    raise ConfigError(
      f"objective.mask_rate={rate} must be above 0 and at most 1: the share "
      "of the tokens to predict, 0.15 in BERT."
    )
  if not max_predictions:
    # As the decimal that was written: 0.07 * 100 is above 7 in binary.
    return math.ceil(fractions.Fraction(str(rate)) * length)
  needed = max(1, round(rate * length))
  if max_predictions < needed:
    raise ConfigError(
      f"objective.max_predictions={max_predictions} is too small for mask_rate="
      f"{rate} of {length} tokens: set it to at least {needed}, or to 0 for "
      "what the rate needs."
    )
  return min(max_predictions, length)


def check_shares(mask_share: float, random_share: float) -> None:
  """Raises ConfigError unless both are shares and leave 0 or more to keep."""
  kept_share = 1 - mask_share - random_share
  if not min(mask_share, random_share, kept_share) >= -1e-9:
    raise ConfigError(
      f"objective.mask_share={mask_share} and random_share={random_share} must "
      "be at least 0 and add up to at most 1; the rest is kept as it is (0.8 "
      "and 0.1 in BERT)."
    )


class TokenTable(NamedTuple):
  """A distribution over tokens, exact to 2^-32."""

  ids: Array  # [n] int32: the tokens of non-zero probability.
  # [n - 1] uint32: token i is drawn for uint32 bits in
  # [boundaries[i - 1], boundaries[i]), from 0 and up to 2^32.
  boundaries: Array


def token_table(counts) -> TokenTable:
  """The distribution proportional to counts [V]; a count of 0 is never drawn.

  Raises:
    ConfigError: nothing is left to draw.
  """
  counts = np.asarray(counts, np.int64)
  ids = np.flatnonzero(counts)
  if not ids.size:
    raise ConfigError(
      "no token can replace another: the corpus holds special tokens only."
    )
  *cumulative, total = np.cumsum(counts[ids]).tolist()
  # Python's integers: cumulative * 2^32 overflows 64 bits in a large corpus.
  boundaries = [(c << 32) // total for c in cumulative]
  return TokenTable(ids.astype(np.int32), np.array(boundaries, np.uint32))


def draw_tokens(key, table: TokenTable, shape):
  """Independent draws from the table -> int32 ids of `shape`."""
  bits = jax.random.bits(key, shape, jnp.uint32)
  boundaries = jnp.asarray(table.boundaries)
  return jnp.asarray(table.ids)[
    jnp.searchsorted(boundaries, bits, side="right")
  ]


def maskable(input_ids, segment_ids, is_special):
  """Which tokens may be chosen: real and not special.

  Args:
    input_ids: [B, L].
    segment_ids: [B, L], 0 = padding.
    is_special: [V] bool.

  Returns:
    [B, L] bool.
  """
  return (segment_ids > 0) & ~jnp.asarray(is_special)[input_ids]


def choose_tokens(key, segment_ids, candidates, *, rate, num_slots):
  """Chooses single tokens, uniformly and without replacement.

  A row gets n = clip(round(rate * its real tokens), 1, P) of them, where
  [CLS] and [SEP] count as real although they are never chosen; fewer if it has
  fewer candidates (google-research/bert, create_masked_lm_predictions).

  Args:
    key: a PRNG key.
    segment_ids: [B, L], 0 = padding.
    candidates: [B, L] bool, those that may be chosen.
    rate: share of the real tokens, in (0, 1].
    num_slots: P.

  Returns:
    positions [B, P] int32 in random order, weights [B, P] float32, 0 or 1.
  """
  L = segment_ids.shape[1]
  # Python's round, for each possible number of real tokens.
  wanted = [min(max(round(rate * t), 1), num_slots) for t in range(L + 1)]
  num_real = jnp.sum(segment_ids > 0, axis=1)
  n = jnp.minimum(jnp.array(wanted)[num_real], jnp.sum(candidates, axis=1))
  # The candidates in random order, then the others. By a sort: top_k gathers
  # the rows of all devices onto each.
  order = jax.random.bits(key, candidates.shape, jnp.uint32) >> 1
  order = jnp.where(candidates, order, jnp.uint32(2**32 - 1))
  positions = jnp.argsort(order, axis=1)[:, :num_slots]
  used = jnp.arange(num_slots) < n[:, None]
  return jnp.where(used, positions, 0), used.astype(jnp.float32)


def replace_tokens(
  key,
  input_ids,
  positions,
  weights,
  *,
  mask_id,
  mask_share,
  random_share,
  random_tokens,
):
  """Hides the chosen tokens: by [MASK], by a random token, or not at all.

  Args:
    key: a PRNG key; each slot draws on its own.
    input_ids: [B, L] int32.
    positions: [B, P] int32.
    weights: [B, P]; slots of weight 0 change nothing.
    mask_id: id of [MASK].
    mask_share: probability of [MASK].
    random_share: probability of a random token; the rest keeps its own.
    random_tokens: TokenTable that random tokens are drawn from.

  Returns:
    The corrupted input_ids [B, L], and labels [B, P] int32: the tokens that
    were there, 0 where the weight is 0.
  """
  share_key, token_key = jax.random.split(key)
  used = weights > 0
  original = jnp.take_along_axis(input_ids, positions, axis=1)
  share = jax.random.uniform(share_key, positions.shape)
  drawn = draw_tokens(token_key, random_tokens, positions.shape)
  hidden = jnp.where(share < mask_share + random_share, drawn, original)
  hidden = jnp.where(share < mask_share, mask_id, hidden)
  # Slots of weight 0 stand at position 0: write them out of range, to be
  # dropped. By vmap, so that rows split over devices stay where they are.
  targets = jnp.where(used, positions, input_ids.shape[1])
  corrupted = jax.vmap(lambda row, at, to: row.at[at].set(to, mode="drop"))(
    input_ids, targets, hidden
  )
  return corrupted, jnp.where(used, original, 0)
