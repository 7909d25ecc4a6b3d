"""Words and spans, against the loops of their definitions and by hand."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maskedlm.data.tokenizers.tokenizer import train_tokenizer
from maskedlm.modeling.masking import spans, tokens

PAD, UNK, CLS, SEP, MASK = range(5)
V = 97
IS_SPECIAL = np.arange(V) < 5
STARTS_WORD = np.arange(V) < 60  # Ids from 60 on continue a word.
SHARES = spans.geometric_shares(0.2, 10)


def rows_of(sizes, L):
  """Returns (ids, segment_ids) [1, L] of a row of words of these sizes."""
  words = [[5 + i % 50] + [60 + i % 30] * (n - 1) for i, n in enumerate(sizes)]
  row = [CLS, *itertools.chain(*words), SEP]
  real = [1] * len(row) + [0] * (L - len(row))
  row += [PAD] * (L - len(row))
  return np.array([row], np.int32), np.array([real], np.int32)


@functools.partial(jax.jit, static_argnames=("how", "rate", "P", "rows"))
def choose(key, ids, segments, *, how, rate, P, rows=None):
  """Returns the chosen tokens of (copies of) rows, and num_to_mask."""
  if rows:
    ids, segments = (
      jnp.broadcast_to(x, (rows, x.shape[1])) for x in (ids, segments)
    )
  candidates = tokens.maskable(ids, segments, IS_SPECIAL)
  begins = spans.word_starts(ids, segments, STARTS_WORD, IS_SPECIAL)
  num_to_mask = tokens.count_to_mask(
    jnp.sum(candidates, axis=1),
    rate=rate,
    length=ids.shape[1],
    num_predictions=P,
    budget=tokens.span_budget,
  )
  if how == "words":
    chosen = spans.choose_words(
      key, candidates, begins, num_to_mask, num_predictions=P
    )
  else:
    chosen = spans.choose_spans(
      key, candidates, begins, num_to_mask, shares=SHARES, num_predictions=P
    )
  return *chosen, num_to_mask


def masks(positions, weights, L):
  """Returns the chosen tokens as [B, L] bool."""
  out = np.zeros((len(positions), L + 1), bool)
  at = np.where(np.asarray(weights) > 0, positions, L)
  np.put_along_axis(out, at, True, axis=1)
  return out[:, :L]


# Words.


def take_in_order(sizes, budget):
  """The definition, the loop over shuffled words in google-research/bert."""
  taken = []
  for size in sizes:
    fits = 0 < size <= budget
    taken.append(fits)
    budget -= size * fits
  return taken


def test_fits_in_order():
  by_hand = spans.fits_in_order(
    jnp.array([[2, 3, 1, 2, 1], [9, 0, 2, 2, 1]]), jnp.array([4, 3])
  )
  np.testing.assert_array_equal(by_hand, [[1, 0, 1, 0, 1], [0, 0, 1, 0, 1]])
  rng = np.random.default_rng(3)
  sizes = rng.geometric(0.6, (2_000, 23)) * (rng.random((2_000, 23)) < 0.9)
  budget = rng.integers(0, 19, 2_000)
  expected = [take_in_order(*x) for x in zip(sizes, budget, strict=True)]
  np.testing.assert_array_equal(spans.fits_in_order(sizes, budget), expected)


def test_whole_words_are_uniform():
  # 9 words of 20 tokens, budget 6: words stay whole, no other word would fit,
  # and words of equal size are chosen equally often.
  sizes = [1, 2, 1, 3, 7, 2, 1, 2, 1]
  ids, segments = rows_of(sizes, 27)
  N = 20_000
  positions, weights, num_to_mask = map(
    np.asarray,
    choose(
      jax.random.key(1), ids, segments, how="words", rate=0.3, P=9, rows=N
    ),
  )
  assert (num_to_mask == 6).all()
  chosen = masks(positions, weights, 27)
  ends = 1 + np.cumsum(sizes)
  counts = np.stack(
    [chosen[:, e - n : e].sum(1) for e, n in zip(ends, sizes, strict=True)], 1
  )
  assert np.isin(counts, [0, *sizes]).all()
  assert ((counts == 0) | (counts == sizes)).all()
  assert not chosen[:, [0, 21, 22, 26]].any()
  used = counts.sum(1)
  np.testing.assert_array_equal(weights.sum(1), used)
  assert (used <= 6).all()
  left = np.where(counts == 0, sizes, 99).min(1)
  assert (used + left > 6).all()
  assert (counts[:, 4] == 0).all()  # The word is too long.
  share = (counts > 0).mean(0)
  for same in ([0, 2, 6, 8], [1, 5, 7]):
    bound = 5 * math.sqrt(2 * 0.25 / N)
    assert np.ptp(share[same]) < bound


# Spans.


def test_lengths_are_geometric():
  # P(l) = 0.2 * 0.8^(l - 1) / (1 - 0.8^10): mean 3.797.
  n = 100_000
  drawn = np.asarray(spans.draw_lengths(jax.random.key(0), SHARES, (n,)))
  seen = np.bincount(drawn, minlength=11)
  assert seen[0] == 0
  assert len(seen) == 11
  expected = n * 0.2 * 0.8 ** np.arange(10) / (1 - 0.8**10)
  chi_square = np.sum((seen[1:] - expected) ** 2 / expected)
  assert chi_square < 9 + 5 * math.sqrt(18)  # 9 degrees of freedom.
  assert drawn.mean() == pytest.approx(3.797, abs=5 * 2.6 / math.sqrt(n))


def test_ngram_lengths():
  # 1, 1/2 and 1/3 of 11/6.
  np.testing.assert_allclose(spans.ngram_shares(3), [6 / 11, 3 / 11, 2 / 11])
  np.testing.assert_allclose(spans.geometric_shares(1.0, 3), [1, 0, 0])


def first_cover(rank, lengths):
  """The definition: spans in the order of their rank, if not yet covered."""
  cover = np.full(len(rank), np.inf)
  for i in np.argsort(rank, kind="stable"):
    if np.isfinite(rank[i]) and np.isinf(cover[i]):
      inside = slice(i, i + lengths[i])
      cover[inside] = np.minimum(cover[inside], rank[i])
  return cover


def test_first_cover():
  # The span at word 1 is first and covers 1-3; the one at 3 is then not drawn,
  # so word 4 is covered by its own span, which precedes that of 0.
  by_hand = spans.first_cover(
    jnp.array([[8.0, 1.0, 9.0, 2.0, 5.0]]),
    jnp.array([[2, 3, 1, 2, 1]]),
    longest=3,
  )
  np.testing.assert_array_equal(by_hand, [[8, 1, 1, 1, 5]])
  rng = np.random.default_rng(5)
  rank = rng.permuted(np.tile(np.arange(67.0), (1_000, 1)), axis=1)
  rank[rng.random(rank.shape) < 0.1] = np.inf
  # A span ends before a word of infinite rank.
  room = np.zeros(rank.shape, int)
  for i in reversed(range(67)):
    after = room[:, i + 1] if i < 66 else 0
    room[:, i] = np.where(np.isinf(rank[:, i]), 0, 1 + after)
  lengths = np.minimum(rng.choice(np.arange(1, 11), rank.shape, p=SHARES), room)
  expected = [first_cover(*x) for x in zip(rank, lengths, strict=True)]
  found = spans.first_cover(
    jnp.array(rank, jnp.float32), jnp.array(lengths), longest=10
  )
  np.testing.assert_array_equal(found, expected)


def draw_spans(rng, sizes, budget):
  """The definition, span by span: returns a bool for each word."""
  sizes = np.array(sizes)
  order, free = [], np.ones(len(sizes), bool)
  while free.any():
    length = rng.choice(10, p=SHARES) + 1
    word = rng.choice(len(sizes), p=sizes * free / sizes[free].sum())
    new = [w for w in range(word, min(word + length, len(sizes))) if free[w]]
    free[new] = False
    order += new
  taken = np.zeros(len(sizes), bool)
  taken[order] = take_in_order(sizes[order], budget)
  return taken


def test_spans_have_the_distribution_of_the_loop():
  N, M = 10_000, 2_000
  sizes, rate = [1, 2, 1, 1, 3, 1, 2, 1] * 5, 0.3
  ids, segments = rows_of(sizes, sum(sizes) + 5)
  P = math.ceil(rate * sum(sizes))
  positions, weights, num_to_mask = map(
    np.asarray,
    choose(
      jax.random.key(7), ids, segments, how="spans", rate=rate, P=P, rows=N
    ),
  )
  assert (num_to_mask == P).all()
  chosen = masks(positions, weights, ids.shape[1])
  starts = 1 + np.cumsum([0, *sizes[:-1]])
  words = chosen[:, starts]
  # Whole words and nothing else.
  np.testing.assert_array_equal(words @ sizes, chosen.sum(1))
  rng = np.random.default_rng(8)
  expected = np.stack([draw_spans(rng, sizes, P) for _ in range(M)])

  def bound(share):
    return 5 * np.sqrt(np.maximum(share * (1 - share), 1e-4) * (1 / M + 1 / N))

  def compare(a, b):
    assert (np.abs(a - b) < bound(b)).all(), (a, b)

  # Each word is chosen as often.
  compare(words.mean(0), expected.mean(0))
  # As many tokens are chosen: all of the budget unless no word fits.
  assert (words @ sizes).mean() == pytest.approx(
    (expected @ sizes).mean(), abs=5 * 0.5 / math.sqrt(M)
  )
  # Spans are as long: the share of rows with a span of each number of words.
  for length in range(1, 11):
    compare(has_span(words, length).mean(), has_span(expected, length).mean())


def has_span(words, length):
  """Returns whether each row has a span of exactly that many words, [B]."""
  padded = np.pad(words, ((0, 0), (1, 1)))
  pattern = np.array([0] + [1] * length + [0], bool)
  window = np.lib.stride_tricks.sliding_window_view(padded, length + 2, axis=1)
  return (window == pattern).all(-1).any(-1)


def test_a_span_ends_at_a_special_token_and_at_its_segment():
  # Longest spans only: from any start they reach the next special token.
  ids = np.array([[CLS, 7, 8, UNK, 9, 10, SEP, CLS, 11, 12, SEP, PAD]])
  segments = np.array([[1] * 7 + [2] * 4 + [0]])
  candidates = tokens.maskable(ids, segments, IS_SPECIAL)
  begins = spans.word_starts(ids, segments, STARTS_WORD, IS_SPECIAL)
  draw = jax.jit(
    functools.partial(
      spans.choose_spans, shares=np.array([0.0, 0.0, 1.0]), num_predictions=2
    )
  )
  seen = set()
  for k in range(40):
    key = jax.random.key(k)
    positions, weights = draw(key, candidates, begins, np.array([2]))
    assert (weights == 1).all()
    seen.add(tuple(np.asarray(positions)[0].tolist()))
  # A whole run, or the second half of one and the beginning of the next.
  whole = {(1, 2), (4, 5), (8, 9)}
  assert seen > whole
  assert all(set(pair) & {2, 5, 9} for pair in seen - whole)


def test_rows_of_any_kind():
  # No text, one word, a word that is too long, text that is all chosen.
  made = [rows_of(s, 15) for s in ([], [1], [9], [2, 1, 3])]
  ids, segments = (np.concatenate(x) for x in zip(*made, strict=True))
  for how, rate, expected in (
    ("spans", 0.15, [0, 1, 0, 1]),
    ("words", 0.15, [0, 1, 0, 1]),
    ("spans", 1.0, [0, 1, 9, 6]),
  ):
    _, weights, _ = choose(
      jax.random.key(3), ids, segments, how=how, rate=rate, P=13
    )
    np.testing.assert_array_equal(weights.sum(1), expected)


def test_span_ends_by_hand():
  positions = np.array([[2, 3, 4, 7, 9, 10, 0, 0], [1, 2, 4, 5, 6, 8, 9, 10]])
  weights = np.array([[1, 1, 1, 1, 1, 1, 0, 0], [1] * 8])
  first, last = spans.span_ends(positions, weights)
  np.testing.assert_array_equal(
    first, [[0, 0, 0, 3, 4, 4, 6, 7], [0, 0, 2, 2, 2, 5, 5, 5]]
  )
  np.testing.assert_array_equal(
    last, [[2, 2, 2, 3, 5, 5, 6, 7], [1, 1, 4, 4, 4, 7, 7, 7]]
  )


def test_masks_of_keys_are_independent():
  # A token is masked with both of two keys with the product of the shares.
  L, N = 67, 4_000
  ids, segments = rows_of([1, 2] * 21, L)
  first, second = (
    masks(
      *choose(key, ids, segments, how="spans", rate=0.3, P=19, rows=N)[:2], L
    )
    for key in jax.random.split(jax.random.key(9))
  )
  both = (first & second).mean(0)
  product = first.mean(0) * second.mean(0)
  assert np.abs(both - product).max() < 5 * math.sqrt(0.25 / N)
  # So are the rows of one batch.
  both = (first[1:] & first[:-1]).mean(0)
  assert np.abs(both - first.mean(0) ** 2).max() < 5 * math.sqrt(0.25 / N)


# Where words begin, as each tokenizer counts them.


def test_word_starts_by_hand():
  # [CLS] ##a b ##c [UNK] ##d [SEP] | ##e f ##g [SEP], the second segment
  # beginning in the middle of a word; then padding.
  ids = np.array([[CLS, 60, 7, 61, UNK, 62, SEP, 63, 64, 8, SEP, PAD]])
  segments = np.array([[1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 0]])
  begins = spans.word_starts(ids, segments, STARTS_WORD, IS_SPECIAL)
  np.testing.assert_array_equal(begins, [[1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1]])
  # A segment begins a word, and so does a row.
  ids, segments = np.array([[61, 62, 63, 64]]), np.array([[1, 1, 2, 2]])
  begins = spans.word_starts(ids, segments, STARTS_WORD, IS_SPECIAL)
  np.testing.assert_array_equal(begins, [[1, 0, 1, 0]])


@pytest.mark.parametrize(
  ("kind", "vocab_size"), [("wordpiece", 150), ("bpe", 320), ("unigram", 120)]
)
def test_words_equal_those_of_every_tokenizer(kind, vocab_size):
  lines = [x.__doc__ for x in (spans, tokens, spans.choose_spans)]
  tokenizer = train_tokenizer(
    lines, kind=kind, vocab_size=vocab_size, lowercase=True
  )
  encoding = tokenizer.encode("a word that overflows begins after the others")
  special = tokenizer.special
  ids = np.array([[special.cls, *encoding.ids, special.sep]])
  assert special.unk not in ids
  begins = spans.word_starts(
    ids,
    np.ones_like(ids),
    tokenizer.starts_word,
    np.isin(np.arange(tokenizer.vocab_size), tokenizer.special_ids),
  )
  word_ids = np.asarray(begins)[0, 1:-1].cumsum() - 1
  np.testing.assert_array_equal(word_ids, encoding.word_ids)
  assert word_ids[-1] < 0.8 * len(word_ids)  # Many words of several tokens.
