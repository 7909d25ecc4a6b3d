"""Masking of single tokens: choose them, then replace them.

Pure functions of a key and the whole global batch, called within the jitted
step, so masks do not depend on the number of devices or accumulation steps. An
objective composes a function that chooses P tokens of a row and one that
replaces them:

  positions, weights = choose_tokens(key, ...)
  input_ids, labels = replace_tokens(key, input_ids, positions, weights, ...)

spans.py chooses words and spans; edits.py shuffles, deletes and inserts rather
than replaces; masking.py builds one function from the options. See
docs/guides/pretrain/masking.md.

Shapes are static: each row has P predictions, of which the unused ones have
position 0, weight 0 and label 0, as in google-research/bert.
"""

import fractions
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.modeling.arrays import Array, Bool, Float, Int, Key


def bert_budget(rate: float, num_tokens: int) -> int:
  """Returns how many of num_tokens to choose; special tokens are counted.

  From google-research/bert, create_masked_lm_predictions.

  >>> bert_budget(0.15, 128), bert_budget(0.15, 2)
  (19, 1)
  """
  return max(round(rate * num_tokens), 1)


def span_budget(rate: float, num_tokens: int) -> int:
  """Returns how many of num_tokens to choose; special tokens are not counted.

  From SpanBERT.
  """
  # Exact in decimal: 0.07 * 100 exceeds 7 in binary.
  return math.ceil(fractions.Fraction(str(rate)) * num_tokens)


def count_predictions(
  rate: float, length: int, *, max_predictions: int, budget=bert_budget
) -> int:
  """Returns P, the predictions in a row.

  Args:
    rate: share of the tokens to predict.
    length: tokens in a full row, as the budget counts them.
    max_predictions: P; 0 for ceil(rate * length).
    budget: bert_budget or span_budget.

  Raises:
    ConfigError: max_predictions is too small for a row without padding.
  """
  if not max_predictions:
    return span_budget(rate, length)
  needed = budget(rate, length)
  if max_predictions < needed:
    raise ConfigError(
      f"objective.max_predictions={max_predictions} is too small for mask_rate="
      f"{rate} of {length} tokens: set it to at least {needed}, or to 0 for as "
      "many as the rate needs."
    )
  return min(max_predictions, length)


def count_to_mask(
  num_tokens: Int[Array, " B"],
  *,
  rate: float,
  length: int,
  num_predictions: int,
  budget=bert_budget,
) -> Int[Array, " B"]:
  """Returns how many tokens to mask in each row, at most P.

  num_tokens are those that the budget counts, at most `length` each; P is
  num_predictions, and the others are as in `count_predictions`.
  """
  table = [min(budget(rate, t), num_predictions) for t in range(length + 1)]
  return jnp.array(table, jnp.int32)[num_tokens]


class TokenTable(NamedTuple):
  """A distribution over tokens, exact to 2^-32."""

  ids: Array  # [n] int32, the tokens of non-zero probability.
  # [n - 1] uint32: token i is drawn for random bits in
  # [boundaries[i - 1], boundaries[i]); the outermost bounds are 0 and 2^32.
  boundaries: Array


def token_table(counts: Array) -> TokenTable:
  """Returns the distribution proportional to counts [V].

  Raises:
    ConfigError: all counts are 0.
  """
  counts = np.asarray(counts, np.int64)
  ids = np.flatnonzero(counts)
  if not ids.size:
    raise ConfigError(
      "no token can replace another: the corpus holds special tokens only."
    )
  *cumulative, total = np.cumsum(counts[ids]).tolist()
  # Python's integers, as cumulative * 2^32 may overflow 64 bits.
  boundaries = [(c << 32) // total for c in cumulative]
  return TokenTable(ids.astype(np.int32), np.array(boundaries, np.uint32))


def draw_tokens(
  key: Key[Array, ""], table: TokenTable, shape: tuple[int, ...]
) -> Int[Array, "..."]:
  """Returns independent draws from the table: int32 ids of `shape`."""
  bits = jax.random.bits(key, shape, jnp.uint32)
  boundaries = jnp.asarray(table.boundaries)
  return jnp.asarray(table.ids)[
    jnp.searchsorted(boundaries, bits, side="right")
  ]


def maskable(
  input_ids: Int[Array, "B L"],
  segment_ids: Int[Array, "B L"],
  is_special: Bool[Array, " V"],
) -> Bool[Array, "B L"]:
  """Returns which tokens may be chosen: neither special nor padding."""
  return (segment_ids > 0) & ~jnp.asarray(is_special)[input_ids]


def choose_tokens(
  key: Key[Array, ""],
  candidates: Bool[Array, "B L"],
  num_to_mask: Int[Array, " B"],
  *,
  num_predictions: int,
  weights: Float[Array, "B L"] | None = None,
) -> tuple[Int[Array, "B P"], Float[Array, "B P"]]:
  """Chooses single tokens without replacement.

  Args:
    candidates: tokens that may be chosen.
    num_to_mask: at most P. A row with fewer candidates gets fewer.
    num_predictions: P.
    weights: above 0; each token is drawn with a probability proportional to
      its weight among those that are left. None for equal ones.

  Returns:
    positions, in random order, and weights, 0 or 1.

  >>> candidates = jnp.array([[False, True, True, False, True]])
  >>> positions, weights = choose_tokens(
  ...   jax.random.key(0), candidates, jnp.array([2]), num_predictions=3
  ... )
  >>> {*positions[0, :2].tolist()} <= {1, 2, 4}, weights.tolist()
  (True, [[1.0, 1.0, 0.0]])
  """
  n = jnp.minimum(num_to_mask, jnp.sum(candidates, axis=1))
  # The candidates in random order, then the others. top_k would gather the rows
  # of all devices on each.
  if weights is None:
    order = jax.random.bits(key, candidates.shape, jnp.uint32) >> 1
    order = jnp.where(candidates, order, jnp.uint32(2**32 - 1))
  else:  # The first of exponential variables of these rates.
    order = jax.random.exponential(key, candidates.shape) / weights
    order = jnp.where(candidates, order, jnp.inf)
  positions = jnp.argsort(order, axis=1)[:, :num_predictions]
  used = jnp.arange(num_predictions) < n[:, None]
  return jnp.where(used, positions, 0), used.astype(jnp.float32)


def replace_tokens(
  key: Key[Array, ""],
  input_ids: Int[Array, "B L"],
  positions: Int[Array, "B P"],
  weights: Float[Array, "B P"],
  *,
  mask_id: int,
  mask_share: float,
  random_share: float,
  random_tokens: TokenTable,
  leaders: Int[Array, "B P"] | None = None,
) -> tuple[Int[Array, "B L"], Int[Array, "B P"]]:
  """Replaces the chosen tokens by [MASK] or random tokens, or keeps them.

  Args:
    key: decides what becomes of each.
    positions: the chosen tokens.
    weights: predictions of weight 0 change nothing.
    mask_id: id of [MASK].
    mask_share: probability of [MASK].
    random_share: probability of a random token; otherwise the token is kept.
    random_tokens: what random tokens are drawn from.
    leaders: index of the prediction whose draw each one shares, such as the
      first of its span (spans.span_ends); random tokens still differ. None if
      each draws for itself.

  Returns:
    The corrupted input_ids, and labels: the original tokens, 0 where the weight
    is 0.
  """
  share_key, token_key = jax.random.split(key)
  used = weights > 0
  original = jnp.take_along_axis(input_ids, positions, axis=1)
  share = jax.random.uniform(share_key, positions.shape)
  if leaders is not None:
    share = jnp.take_along_axis(share, leaders, axis=1)
  drawn = draw_tokens(token_key, random_tokens, positions.shape)
  values = jnp.where(share < mask_share + random_share, drawn, original)
  values = jnp.where(share < mask_share, mask_id, values)
  corrupted = write_at(input_ids, positions, weights, values)
  return corrupted, jnp.where(used, original, 0)


def write_at(
  rows: Array, positions: Int[Array, "B P"], weights: Array, values: Array
) -> Array:
  """Returns rows [B, L] with values [B, P] at positions of weight > 0."""
  # Predictions of weight 0 have position 0: writing them out of range drops
  # them. With vmap, rows that are split over devices are not gathered.
  targets = jnp.where(weights > 0, positions, rows.shape[1])
  return jax.vmap(lambda row, at, to: row.at[at].set(to, mode="drop"))(
    rows, targets, values
  )
