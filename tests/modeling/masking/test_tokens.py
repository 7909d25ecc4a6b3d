"""Choosing and replacing single tokens: by hand, and as distributions."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maskedlm.core.errors import ConfigError
from maskedlm.modeling.masking import tokens
from maskedlm.modeling.masking.tokens import TokenTable

PAD, UNK, CLS, SEP, MASK = range(5)
V = 97
IS_SPECIAL = np.arange(V) < 5
COUNTS = np.where(IS_SPECIAL, 0, np.arange(V) ** 2 % 23)
# Ids of count 0 and not special: a random token is never one of them.
RARE = np.flatnonzero((COUNTS == 0) & ~IS_SPECIAL)


def rows_of(lengths, L):
  """Returns rows [CLS] words [SEP] words [SEP] padding, and their segments.

  Rows of up to 4 tokens have no [SEP] in the middle.
  """
  rng = np.random.default_rng(0)
  lengths, column = np.array(lengths)[:, None], np.arange(L)
  ids = rng.integers(5, V, (len(lengths), L))
  ids = np.where(column == 0, CLS, ids)
  middle = (column == lengths // 2) & (lengths > 4)
  ids = np.where(middle | (column == lengths - 1), SEP, ids)
  real = column < lengths
  return np.where(real, ids, PAD).astype(np.int32), real.astype(np.int32)


@functools.partial(jax.jit, static_argnums=(3, 4))
def choose(key, ids, segments, rate, num_predictions):
  num_to_mask = tokens.count_to_mask(
    jnp.sum(segments > 0, axis=1),
    rate=rate,
    length=ids.shape[1],
    num_predictions=num_predictions,
  )
  candidates = tokens.maskable(ids, segments, IS_SPECIAL)
  return tokens.choose_tokens(
    key, candidates, num_to_mask, num_predictions=num_predictions
  )


@functools.partial(jax.jit, static_argnames=("mask_share", "random_share"))
def replace(
  key, ids, positions, weights, table, mask_share=0.8, random_share=0.1
):
  return tokens.replace_tokens(
    key,
    ids,
    positions,
    weights,
    mask_id=MASK,
    mask_share=mask_share,
    random_share=random_share,
    random_tokens=table,
  )


def test_count_predictions():
  assert tokens.count_predictions(0.15, 128, max_predictions=0) == 20  # 19.2
  assert tokens.count_predictions(0.15, 512, max_predictions=0) == 77  # 76.8
  assert tokens.count_predictions(0.07, 100, max_predictions=0) == 7  # Not 8.
  assert tokens.count_predictions(1.0, 13, max_predictions=0) == 13
  assert tokens.count_predictions(0.15, 128, max_predictions=19) == 19
  assert tokens.count_predictions(0.15, 13, max_predictions=20) == 13


def test_budgets():
  # BERT: Python's round of 15%, at least 1. SpanBERT: rounded up in decimal
  # (0.07 * 100 exceeds 7 in binary).
  counts = (0, 3, 10, 30, 126)
  bert = [tokens.bert_budget(0.15, n) for n in counts]
  assert bert == [1, 1, 2, 4, 19]  # 0, 0.45, 1.5, 4.5, 18.9.
  assert [tokens.span_budget(0.15, n) for n in counts] == [0, 1, 2, 5, 19]
  assert tokens.span_budget(0.07, 100) == 7
  count = functools.partial(
    tokens.count_predictions, 0.15, 27, budget=tokens.span_budget
  )
  assert count(max_predictions=0) == count(max_predictions=5) == 5  # 4.05.
  with pytest.raises(ConfigError, match=r"max_predictions=4.*at least 5"):
    count(max_predictions=4)
  num_to_mask = tokens.count_to_mask(
    np.array([27, 3, 0]),
    rate=0.15,
    length=29,
    num_predictions=4,
    budget=tokens.span_budget,
  )
  np.testing.assert_array_equal(num_to_mask, [4, 1, 0])


def test_masking_of_every_row():
  # 3,000 rows of 0 to 37 real tokens: the chosen ones are distinct, real, never
  # special, exactly as many as they should be, and nothing else changes.
  lengths = np.random.default_rng(1).integers(0, 38, 3_000)
  ids, segments = rows_of(lengths, 37)
  choose_key, replace_key = jax.random.split(jax.random.key(5))
  positions, weights = map(
    np.asarray, choose(choose_key, ids, segments, 0.4, 15)
  )
  table = tokens.token_table(COUNTS)
  corrupted, labels = map(
    np.asarray, replace(replace_key, ids, positions, weights, table)
  )
  assert corrupted.dtype == labels.dtype == positions.dtype == np.int32
  for b, length in enumerate(lengths):
    candidates = np.flatnonzero(ids[b] >= 5)
    num_to_mask = min(max(round(0.4 * length), 1), 15, len(candidates))
    chosen = positions[b, :num_to_mask]
    np.testing.assert_array_equal(weights[b], np.arange(15) < num_to_mask)
    assert len(set(chosen)) == num_to_mask
    assert np.isin(chosen, candidates).all()
    np.testing.assert_array_equal(labels[b, :num_to_mask], ids[b, chosen])
    others = np.delete(np.arange(37), chosen)
    np.testing.assert_array_equal(corrupted[b, others], ids[b, others])
  unused = weights == 0
  assert (positions[unused] == 0).all()
  assert (labels[unused] == 0).all()
  produced = corrupted[corrupted != ids]
  assert set(produced[produced < 5]) == {MASK}


def test_positions_are_uniform():
  # Two of 6 candidates (1 2 3 5 6 7) in 30,000 rows: each of the 15 pairs in
  # 2,000 rows, standard deviation 43; in either order.
  ids, segments = rows_of([9] * 30_000, 9)
  positions, _ = choose(jax.random.key(2), ids, segments, 2 / 9, 2)
  positions = np.asarray(positions)
  pairs, counts = np.unique(
    np.sort(positions, axis=1), axis=0, return_counts=True
  )
  assert len(pairs) == 15
  assert np.abs(counts - 2_000).max() < 5 * 43
  ordered = np.mean(positions[:, 0] < positions[:, 1])
  assert ordered == pytest.approx(0.5, abs=5 * 0.5 / math.sqrt(30_000))


def test_shares_are_80_10_10():
  # All positions hold a token that is never drawn, so each outcome shows.
  # 120,000 positions: standard deviation 0.0012 of 0.8 and 0.0009 of 0.1.
  ids = np.full((1_000, 120), RARE[0], np.int32)
  positions = np.broadcast_to(np.arange(120), ids.shape)
  table = tokens.token_table(COUNTS)
  corrupted, labels = replace(
    jax.random.key(3), ids, positions, np.ones(ids.shape), table
  )
  masked, kept = np.mean(corrupted == MASK), np.mean(corrupted == RARE[0])
  assert masked == pytest.approx(0.8, abs=5 * 0.0012)
  assert kept == pytest.approx(0.1, abs=5 * 0.0009)
  np.testing.assert_array_equal(labels, ids)


@pytest.mark.parametrize(
  ("mask_share", "random_share", "expected"),
  [
    (1.0, 0.0, [CLS, MASK, 7, MASK, SEP]),
    (0.0, 1.0, [CLS, 50, 7, 50, SEP]),
    (0.0, 0.0, [CLS, 6, 7, 8, SEP]),
  ],
)
def test_replacement_by_hand(mask_share, random_share, expected):
  ids = np.array([[CLS, 6, 7, 8, SEP]], np.int32)
  positions, weights = np.array([[3, 1, 0]]), np.array([[1.0, 1.0, 0.0]])
  only_50 = TokenTable(np.array([50], np.int32), np.array([], np.uint32))
  corrupted, labels = replace(
    jax.random.key(0),
    ids,
    positions,
    weights,
    only_50,
    mask_share=mask_share,
    random_share=random_share,
  )
  np.testing.assert_array_equal(corrupted, [expected])
  np.testing.assert_array_equal(labels, [[8, 6, 0]])


def test_token_table_by_hand():
  table = tokens.token_table(np.array([0, 1, 0, 2, 1]))
  np.testing.assert_array_equal(table.ids, [1, 3, 4])
  np.testing.assert_array_equal(table.boundaries, [2**30, 3 * 2**30])
  assert table.boundaries.dtype == np.uint32
  # Exact where cumulative * 2^32 would overflow 64 bits.
  table = tokens.token_table(np.array([10**12, 3 * 10**12]))
  np.testing.assert_array_equal(table.boundaries, [2**30])


def test_draws_at_the_boundaries_by_hand(monkeypatch):
  table = tokens.token_table(np.array([0, 1, 0, 2, 1]))
  words = [0, 2**30 - 1, 2**30, 3 * 2**30 - 1, 3 * 2**30, 2**32 - 1]
  monkeypatch.setattr(
    jax.random, "bits", lambda key, shape, dtype: jnp.array(words, dtype)
  )
  drawn = tokens.draw_tokens(jax.random.key(0), table, (6,))
  assert drawn.tolist() == [1, 1, 3, 3, 4, 4]


def test_drawn_tokens_are_independent_of_the_share_drawn():
  # A tenth of 20,000 positions is random: each tenth of the table equally
  # often.
  table = tokens.token_table(np.arange(110) >= 10)
  ids = np.full((100, 200), 3, np.int32)
  chosen = np.tile(np.arange(200), (100, 1)), np.ones((100, 200))
  replaced = np.asarray(replace(jax.random.key(2), ids, *chosen, table)[0])
  drawn = replaced[replaced >= 10]
  assert 1_800 < len(drawn) < 2_200
  tenths = np.bincount((drawn - 10) // 10, minlength=10) / len(drawn)
  assert (np.abs(tenths - 0.1) < 5 * math.sqrt(0.09 / len(drawn))).all()


def test_a_corpus_of_specials_only_is_refused():
  with pytest.raises(ConfigError, match="no token can replace another"):
    tokens.token_table(np.zeros(7))


def test_random_tokens_follow_the_unigram_frequencies():
  n = 200_000
  table = tokens.token_table(COUNTS)
  drawn = jax.jit(tokens.draw_tokens, static_argnums=2)(
    jax.random.key(4), table, (n,)
  )
  seen = np.bincount(drawn, minlength=V)
  assert (seen[COUNTS == 0] == 0).all()
  expected = n * COUNTS[COUNTS > 0] / COUNTS.sum()
  # Chi-square of k cells has mean k - 1 and variance 2 (k - 1).
  chi_square = np.sum((seen[COUNTS > 0] - expected) ** 2 / expected)
  freedom = len(expected) - 1
  assert abs(chi_square - freedom) < 5 * math.sqrt(2 * freedom)
