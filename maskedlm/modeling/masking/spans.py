"""Chooses whole words, n-grams and spans, with a budget of tokens.

Like tokens.choose_tokens, `choose_words` and `choose_spans` return positions
and weights [B, P], treat each row by itself and have static shapes. They put a
row's words in a random order and take as many as the budget allows; a word that
would exceed it is skipped, never cut. Words are arrays [B, W] with W = L, as a
row has no more words than tokens.

The original implementations are loops; the tests have them as reference.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.modeling.arrays import Array, Bool, Float, Int, Key

# Iterations of both fixed-point loops; only unusual rows need as many.
ROUNDS = 8


def geometric_shares(p: float, longest: int) -> np.ndarray:
  """Returns SpanBERT's probabilities [longest] of spans of 1, 2, ... words.

  They are p (1-p)^(l-1), renormalised. In Joshi et al., arXiv:1907.10529,
  section 3.1, p = 0.2 and longest = 10, so the mean is 3.8 words.

  >>> shares = geometric_shares(0.2, 10)
  >>> shares.round(3)[:4], round(float(shares @ range(1, 11)), 1)
  (array([0.224, 0.179, 0.143, 0.115]), 3.8)
  """
  shares = p * (1 - p) ** np.arange(longest)
  return shares / shares.sum()


def ngram_shares(longest: int) -> np.ndarray:
  """Returns the probabilities [longest] of n-grams of n = 1, 2, ... words.

  They are proportional to 1/n, as in Lan et al., arXiv:1909.11942 (ALBERT),
  section 4.1, where longest = 3.

  >>> ngram_shares(3).round(3)
  array([0.545, 0.273, 0.182])
  """
  shares = 1 / np.arange(1, longest + 1)
  return shares / shares.sum()


def word_starts(
  input_ids: Int[Array, "B L"],
  segment_ids: Int[Array, "B L"],
  starts_word: Bool[Array, " V"],
  is_special: Bool[Array, " V"],
) -> Bool[Array, "B L"]:
  """Returns which tokens begin a word.

  These are the tokenizer's word starts, the first token of a row or segment,
  and the token after a special one, as rows may begin within a word. A special
  token is a word of its own.
  """
  special = jnp.asarray(is_special)[input_ids]
  begins = special | jnp.asarray(starts_word)[input_ids]
  after = special | (segment_ids != jnp.roll(segment_ids, -1, axis=1))
  after = jnp.roll(after, 1, axis=1).at[:, 0].set(True)
  return begins | after


def unit_starts(
  key: Key[Array, ""],
  input_ids: Int[Array, "B L"],
  segment_ids: Int[Array, "B L"],
  tokenizer,
  is_special: Bool[Array, " V"],
) -> Bool[Array, "B L"]:
  """Returns which tokens begin a unit that is chosen as a whole.

  It is a word, or as many tokens in a row as overlap, cut at random columns:
  fewer would be given away by their neighbours, which spell the same letters.
  Units at special tokens may be shorter, as these spell nothing. The
  tokenizer's starts_word and overlap are read; see `word_starts` for the
  others.
  """
  starts, size = tokenizer.starts_word, tokenizer.overlap
  if size == 1:
    return word_starts(input_ids, segment_ids, starts, is_special)
  B, L = input_ids.shape
  first = jax.random.randint(jax.random.fold_in(key, size), (B, 1), 0, size)
  none = np.zeros(len(starts), bool)
  barriers = word_starts(input_ids, segment_ids, none, is_special)
  return barriers | ((jnp.arange(L) + first) % size == 0)


def choose_words(
  key: Key[Array, ""],
  candidates: Bool[Array, "B L"],
  begins_word: Bool[Array, "B L"],
  num_to_mask: Int[Array, " B"],
  *,
  num_predictions: int,
) -> tuple[Int[Array, "B P"], Float[Array, "B P"]]:
  """Chooses words uniformly until `num_to_mask` tokens of a row are chosen.

  A word that would exceed that is skipped (google-research/bert, whole-word
  masking).

  Args:
    candidates: tokens that may be chosen: all of a word or none.
    begins_word: the result of `unit_starts`.
    num_to_mask: at most num_predictions.
    num_predictions: P.

  Returns:
    positions, ascending, and weights, 0 or 1.
  """
  words = _words(candidates, begins_word)
  rank = jax.random.uniform(key, words.sizes.shape)
  return _take(rank, words, begins_word, num_to_mask, num_predictions)


def choose_spans(
  key: Key[Array, ""],
  candidates: Bool[Array, "B L"],
  begins_word: Bool[Array, "B L"],
  num_to_mask: Int[Array, " B"],
  *,
  shares: Float[Array, " n"],
  num_predictions: int,
) -> tuple[Int[Array, "B P"], Float[Array, "B P"]]:
  """Chooses spans of words until `num_to_mask` tokens of a row are chosen.

  Repeatedly draws a length, and a token uniformly from those not covered by a
  span; the span begins with the token's word. It ends early at a special token
  and at the end of the text, and may run over covered tokens. Adjacent spans
  count as one. A word that would exceed the budget is skipped, so the last span
  may be cut short (SpanBERT's code cuts it within a word).

  Args:
    key, candidates, begins_word, num_to_mask, num_predictions: as in
      `choose_words`.
    shares: probabilities of spans of 1 to n words.

  Returns:
    positions, ascending, and weights, 0 or 1.
  """
  rank_key, length_key = jax.random.split(key)
  words = _words(candidates, begins_word)
  shape = words.sizes.shape
  # Tokens are drawn in the order of independent exponential variables. A word
  # is drawn with the first of its n tokens; the minimum of n such variables is
  # distributed as 1/n of one.
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


def draw_lengths(
  key: Key[Array, ""], shares: Float[Array, " n"], shape: tuple[int, ...]
) -> Int[Array, "..."]:
  """Draws int32 lengths of `shape`: 1 with probability shares[0], and so on."""
  boundaries = jnp.asarray(np.cumsum(shares)[:-1], jnp.float32)
  draw = jax.random.uniform(key, shape)
  return 1 + jnp.searchsorted(boundaries, draw, side="right").astype(jnp.int32)


def first_cover(
  rank: Float[Array, "B W"], lengths: Int[Array, "B W"], *, longest: int
) -> Float[Array, "B W"]:
  """Returns the rank of the first span that covers each word; inf for none.

  Spans are drawn in the order of the rank of the word that they begin with,
  which is inf if none does; they have `lengths` words, at most `longest`. A
  span whose first word is already covered is not drawn, which in turn depends
  on the spans before it: each iteration resolves one more link in a chain of
  spans that each begin within the previous one. A chain of more than ROUNDS
  links, which is very rare, ends with a span that begins within another.
  """
  B, W = rank.shape

  def before(drawn):
    """Returns the least rank of a drawn span that reaches in from the left."""
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
  """Returns which sizes fit the budget in order, skipping those that do not.

  Each iteration takes as many consecutive sizes as fit and discards those that
  no longer do. Only sizes that decrease as slowly as possible would need more
  than ROUNDS. For int32 sizes [B, W], of which 0 is never taken, and budgets
  [B], the result is bool [B, W].
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
  """Returns the first and last index in P of each prediction's span, [B, P].

  A span is a run of consecutive positions; positions ascend, as `choose_spans`
  returns them. A prediction of weight 0 is a span by itself.
  """
  index = jnp.arange(positions.shape[1])
  follows = (jnp.diff(positions, axis=1) == 1) & (weights[:, 1:] > 0)
  begins = jnp.pad(~follows, ((0, 0), (1, 0)), constant_values=True)
  ends = jnp.pad(~follows, ((0, 0), (0, 1)), constant_values=True)
  first = jax.lax.cummax(jnp.where(begins, index, 0), axis=1)
  last = jax.lax.cummin(jnp.where(ends, index, index[-1]), axis=1, reverse=True)
  return first, last


class _Words(NamedTuple):
  """A row's words, in order: [B, W]."""

  sizes: Array  # int32, in tokens; 0 after the last word.
  allowed: Array  # bool, may be chosen.


def _words(candidates, begins_word) -> _Words:
  L = candidates.shape[1]
  starts = jnp.sort(jnp.where(begins_word, jnp.arange(L), L), axis=1)
  sizes = jnp.diff(starts, axis=1, append=L)
  first = jnp.minimum(starts, L - 1)
  allowed = jnp.take_along_axis(candidates, first, axis=1) & (sizes > 0)
  return _Words(sizes, allowed)


def _take(rank, words: _Words, begins_word, num_to_mask, num_predictions):
  """Returns positions and weights of the words of lowest rank that fit.

  Words of equal rank are taken from left to right.
  """
  order = jnp.argsort(jnp.where(words.allowed, rank, jnp.inf), axis=1)
  sizes = jnp.where(words.allowed, words.sizes, 0)
  taken = fits_in_order(jnp.take_along_axis(sizes, order, axis=1), num_to_mask)
  # Back from ranks to words, and to their tokens. With vmap, rows that are
  # split over devices are not gathered.
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
