"""Whole words, n-grams and spans: chosen by the word, paid for in tokens.

The ways to choose that see words, beside corruption.choose_tokens and on the
same terms: slots [B, P] from a key, each row by itself, static shapes. Both
put a row's words in an order and take what the budget allows; a word that
would overflow it is skipped, never cut. A row's words are arrays [B, W] with
W = L, as a row has no more words than tokens.

The definitions are loops in the originals; the loops stand in the tests.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.modeling.masking.tokens import Array

# Of both fixed-point loops, which end earlier in all but odd rows.
ROUNDS = 8


def geometric_shares(p: float, longest: int) -> np.ndarray:
  """P(1..longest words) of SpanBERT's spans: p (1-p)^(l-1), renormalised.

  Joshi et al., arXiv:1907.10529, section 3.1: p = 0.2 and longest = 10, a mean
  of 3.8 words.

  Raises:
    ConfigError: p is not in (0, 1].
  """
  if not 0 < p <= 1:
    raise ConfigError(
      f"objective.span_p={p} must be above 0 and at most 1: the share of the "
      "spans that end after each word, 0.2 in SpanBERT."
    )
  shares = p * (1 - p) ** np.arange(longest)
  return shares / shares.sum()


def ngram_shares(longest: int) -> np.ndarray:
  """P(1..longest words) of an n-gram, proportional to 1/n.

  Lan et al., arXiv:1909.11942 (ALBERT), section 4.1, where longest = 3.
  """
  shares = 1 / np.arange(1, longest + 1)
  return shares / shares.sum()


def check_max_span_words(longest: int, length: int) -> None:
  """Raises ConfigError unless spans of up to `longest` words fit the rows."""
  if not 1 <= longest <= length - 2:
    raise ConfigError(
      f"objective.max_span_words={longest} must be from 1 to {length - 2}: "
      f"rows of {length} tokens have no room for longer spans."
    )


def word_starts(input_ids, segment_ids, starts_word, is_special):
  """Which tokens begin a word.

  Those that the tokenizer says, and what comes first: in the row, in a
  segment, after a special token (a row may begin within a word). A special
  token is a word of its own.

  Args:
    input_ids, segment_ids: [B, L].
    starts_word, is_special: [V] bool.

  Returns:
    [B, L] bool.
  """
  special = jnp.asarray(is_special)[input_ids]
  begins = special | jnp.asarray(starts_word)[input_ids]
  after = special | (segment_ids != jnp.roll(segment_ids, -1, axis=1))
  after = jnp.roll(after, 1, axis=1).at[:, 0].set(True)
  return begins | after


def choose_words(key, candidates, begins_word, num_to_mask, *, num_predictions):
  """Whole words, each as likely, until `num_to_mask` tokens of a row are chosen.

  A word that would overflow is skipped (google-research/bert, whole-word
  masking).

  Args:
    key: a PRNG key.
    candidates: [B, L] bool, tokens that may be chosen: all of a word or none.
    begins_word: [B, L] bool, see word_starts.
    num_to_mask: [B], at most num_predictions.
    num_predictions: P.

  Returns:
    positions [B, P] int32, ascending, weights [B, P] float32, 0 or 1.
  """
  words = _words(candidates, begins_word)
  rank = jax.random.uniform(key, words.sizes.shape)
  return _take(rank, words, begins_word, num_to_mask, num_predictions)


def choose_spans(key, candidates, begins_word, num_to_mask, *, shares, num_predictions):
  """Spans of words, until `num_to_mask` tokens of a row are chosen.

  Again and again: a length is drawn, and a token, uniform over those that no
  span has yet; the span begins with this token's word. It ends early at a
  special token and at the end of the text, and runs over what is covered
  already. Spans that touch are one. A word that would overflow is skipped, so
  the last span may lack its end (SpanBERT's code cuts it within a word).

  Args:
    key: a PRNG key.
    candidates, begins_word, num_to_mask, num_predictions: see choose_words.
    shares: [n], probability of a span of 1 to n words.

  Returns:
    positions [B, P] int32, ascending, weights [B, P] float32, 0 or 1.
  """
  rank_key, length_key = jax.random.split(key)
  words = _words(candidates, begins_word)
  shape = words.sizes.shape
  # Tokens come in the order of an exponential variable each. A word comes with
  # the first of its n tokens, and the least of n such variables is 1/n of one.
  rank = jax.random.exponential(rank_key, shape) / words.sizes
  rank = jnp.where(words.allowed, rank, jnp.inf)
  index = jnp.arange(shape[1])
  barrier = jax.lax.cummin(
    jnp.where(words.allowed, shape[1], index), axis=1, reverse=True
  )
  lengths = jnp.minimum(
    draw_lengths(length_key, shares, shape), barrier - index
  )
  covered = first_cover(rank, lengths, longest=len(shares))
  return _take(covered, words, begins_word, num_to_mask, num_predictions)


def draw_lengths(key, shares, shape):
  """Independent lengths, 1 with probability shares[0] and so on -> int32."""
  boundaries = jnp.asarray(np.cumsum(shares)[:-1], jnp.float32)
  draw = jax.random.uniform(key, shape)
  return 1 + jnp.searchsorted(boundaries, draw, side="right").astype(jnp.int32)


def first_cover(rank, lengths, *, longest):
  """The rank of the span that is the first to cover each word.

  Spans are drawn in the order of their rank. One whose own first word is
  covered by then is not drawn at all, which depends in turn on earlier ones:
  each round settles one more link of such a chain, of spans that each begin
  within the one before. A chain of more than ROUNDS, which hardly exists,
  ends with a span that begins within another.

  Args:
    rank: [B, W] of the span that begins at each word; infinite for none.
    lengths: [B, W] words of that span, at most `longest`.
    longest: of the lengths.

  Returns:
    [B, W], finite where rank is.
  """
  B, W = rank.shape

  def before(drawn):
    """[B, W]: the least rank of a drawn span from before that gets here."""
    least = jnp.full((B, W), jnp.inf)
    for k in range(1, min(longest, W)):
      reaching = jnp.where(drawn & (lengths > k), rank, jnp.inf)[:, :-k]
      shifted = jnp.pad(reaching, ((0, 0), (k, 0)), constant_values=jnp.inf)
      least = jnp.minimum(least, shifted)
    return least

  drawn = jax.lax.fori_loop(
    0, ROUNDS, lambda _, drawn: before(drawn) > rank, jnp.isfinite(rank)
  )
  return jnp.minimum(before(drawn), rank)


def fits_in_order(sizes, budget):
  """Takes what fits, in order: what would overflow is skipped for good.

  Each round takes as many in a row as fit and strikes out what no longer does.
  More than ROUNDS would take sizes that fall as slowly as they can.

  Args:
    sizes: [B, W] int32, 0 for what is not to be taken.
    budget: [B] int32.

  Returns:
    [B, W] bool.
  """

  def take(_, state):
    waiting, taken, left = state
    waiting &= sizes <= left
    total = jnp.cumsum(jnp.where(waiting, sizes, 0), axis=1)
    fits = waiting & (total <= left)
    spent = jnp.sum(jnp.where(fits, sizes, 0), axis=1, keepdims=True)
    return waiting & ~fits, taken | fits, left - spent

  nothing = jnp.zeros_like(sizes, bool)
  state = (sizes > 0, nothing, budget[:, None])
  return jax.lax.fori_loop(0, ROUNDS, take, state)[1]


def span_ends(positions, weights):
  """The slots of each slot's span: (first [B, P], last [B, P]).

  A span is a run of neighbouring positions, which come ascending, as chosen
  here. A slot of weight 0 is one by itself.
  """
  slot = jnp.arange(positions.shape[1])
  follows = (jnp.diff(positions, axis=1) == 1) & (weights[:, 1:] > 0)
  begins = jnp.pad(~follows, ((0, 0), (1, 0)), constant_values=True)
  ends = jnp.pad(~follows, ((0, 0), (0, 1)), constant_values=True)
  first = jax.lax.cummax(jnp.where(begins, slot, 0), axis=1)
  last = jax.lax.cummin(jnp.where(ends, slot, slot[-1]), axis=1, reverse=True)
  return first, last


class _Words(NamedTuple):
  """A row's words, in order: [B, W]."""

  sizes: Array  # int32, tokens; 0 beyond the last word.
  allowed: Array  # bool, may be chosen.


def _words(candidates, begins_word) -> _Words:
  L = candidates.shape[1]
  starts = jnp.sort(jnp.where(begins_word, jnp.arange(L), L), axis=1)
  sizes = jnp.diff(starts, axis=1, append=L)
  first = jnp.minimum(starts, L - 1)
  allowed = jnp.take_along_axis(candidates, first, axis=1) & (sizes > 0)
  return _Words(sizes, allowed)


def _take(rank, words: _Words, begins_word, num_to_mask, num_predictions):
  """Takes words by ascending rank, equals from left to right; see above."""
  order = jnp.argsort(jnp.where(words.allowed, rank, jnp.inf), axis=1)
  sizes = jnp.where(words.allowed, words.sizes, 0)
  taken = fits_in_order(jnp.take_along_axis(sizes, order, axis=1), num_to_mask)
  # From the order back to the words, and to their tokens. By vmap, so that
  # rows split over devices stay where they are.
  by_word = jax.vmap(
    lambda at, x: jnp.zeros_like(x).at[at].set(x, unique_indices=True)
  )(order, taken)
  word = jnp.cumsum(begins_word, axis=1) - 1
  chosen = jnp.take_along_axis(by_word, word, axis=1)
  L = chosen.shape[1]
  positions = jnp.sort(jnp.where(chosen, jnp.arange(L), L), axis=1)
  positions = positions[:, :num_predictions]
  used = positions < L
  return jnp.where(used, positions, 0), used.astype(jnp.float32)
