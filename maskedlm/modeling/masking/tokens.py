"""What is hidden from the model, and by what: choose, then replace.

Pure functions on the whole global batch, inside the jitted step, from a key:
the masks are the same on any number of devices and of accumulation steps. An
objective composes one way to choose slots [B, P] with one way to replace:

  positions, weights = choose_tokens(key, ...)
  input_ids, labels = replace_tokens(key, input_ids, positions, weights, ...)

Words and spans are chosen in spans.py; edits.py shuffles, deletes and inserts
instead of replacing; hiding.py makes one function of the options. All of it
is in docs/guides/pretrain/masking.md.

Shapes are static: P slots for each row, of which those beyond what the row
gets have position 0, weight 0 and label 0, as in google-research/bert.
"""

import fractions
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import (ConfigError, check_name)

Array = Any  # jax.Array or np.ndarray.
RANDOM_TOKENS = ("unigram", "uniform")


def bert_budget(rate: float, num_tokens: int) -> int:
  """How many to choose of num_tokens, specials included but not choosable.

  google-research/bert, create_masked_lm_predictions.
  """
  return max(round(rate * num_tokens), 1)


def span_budget(rate: float, num_tokens: int) -> int:
  """How many to choose of num_tokens, specials not counted (SpanBERT)."""
  # As the decimal that was written: 0.07 * 100 is above 7 in binary.
  return math.ceil(fractions.Fraction(str(rate)) * num_tokens)


def count_predictions(
  rate: float, length: int, *, max_predictions: int, budget=bert_budget
) -> int:
  """P for rows of `length` tokens; max_predictions=0 is ceil(rate * length).

  Args:
    rate: share of the tokens to predict.
    length: tokens of a full row, as the budget counts them.
    max_predictions: P, if not 0.
    budget: bert_budget or span_budget, which the row is given.

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
    return span_budget(rate, length)
  needed = budget(rate, length)
  if max_predictions < needed:
    raise ConfigError(
      f"objective.max_predictions={max_predictions} is too small for mask_rate="
      f"{rate} of {length} tokens: set it to at least {needed}, or to 0 for "
      "what the rate needs."
    )
  return min(max_predictions, length)


def count_to_mask(num_tokens, *, rate, length, num_predictions, budget=bert_budget):
  """How many tokens each row should get: its budget, at most P.

  Args:
    num_tokens: [B], what the budget counts, each at most `length`.
    rate, length, budget: see count_slots.
    num_predictions: P.

  Returns:
    [B] int32.
  """
  table = [min(budget(rate, t), num_predictions) for t in range(length + 1)]
  return jnp.array(table, jnp.int32)[num_tokens]


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


def random_token_table(name: str, token_counts, is_special) -> TokenTable:
  """What random tokens are drawn from: "unigram" | "uniform", never a special.

  Args:
    name: the option objective.random_tokens.
    token_counts: [V], of the corpus.
    is_special: [V] bool.

  Raises:
    ConfigError: another name, or nothing is left to draw.
  """
  check_name("objective.random_tokens", name, RANDOM_TOKENS)
  counts = np.asarray(token_counts)
  if name == "uniform":
    counts = np.ones_like(counts)
  return token_table(counts * ~np.asarray(is_special))


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


def choose_tokens(key, candidates, num_to_mask, *, num_predictions):
  """Chooses single tokens, uniformly and without replacement.

  Args:
    key: a PRNG key.
    candidates: [B, L] bool, those that may be chosen.
    num_to_mask: [B], how many, at most P; fewer where there are fewer candidates.
    num_predictions: P.

  Returns:
    positions [B, P] int32 in random order, weights [B, P] float32, 0 or 1.
  """
  n = jnp.minimum(num_to_mask, jnp.sum(candidates, axis=1))
  # The candidates in random order, then the others. By a sort: top_k gathers
  # the rows of all devices onto each.
  order = jax.random.bits(key, candidates.shape, jnp.uint32) >> 1
  order = jnp.where(candidates, order, jnp.uint32(2**32 - 1))
  positions = jnp.argsort(order, axis=1)[:, :num_predictions]
  used = jnp.arange(num_predictions) < n[:, None]
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
  leaders=None,
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
    leaders: [B, P], the slot whose fate each slot shares, such as the first of
      its span (spans.span_slots); random tokens still differ. None: its own.

  Returns:
    The corrupted input_ids [B, L], and labels [B, P] int32: the tokens that
    were there, 0 where the weight is 0.
  """
  share_key, token_key = jax.random.split(key)
  used = weights > 0
  original = jnp.take_along_axis(input_ids, positions, axis=1)
  share = jax.random.uniform(share_key, positions.shape)
  if leaders is not None:
    share = jnp.take_along_axis(share, leaders, axis=1)
  drawn = draw_tokens(token_key, random_tokens, positions.shape)
  hidden = jnp.where(share < mask_share + random_share, drawn, original)
  hidden = jnp.where(share < mask_share, mask_id, hidden)
  corrupted = write_at(input_ids, positions, weights, hidden)
  return corrupted, jnp.where(used, original, 0)


def write_at(rows, positions, weights, values):
  """rows [B, L] with values [B, P] at positions [B, P] of weight > 0."""
  # Slots of weight 0 stand at position 0: write them out of range, to be
  # dropped. By vmap, so that rows split over devices stay where they are.
  targets = jnp.where(weights > 0, positions, rows.shape[1])
  return jax.vmap(lambda row, at, to: row.at[at].set(to, mode="drop"))(
    rows, targets, values
  )
