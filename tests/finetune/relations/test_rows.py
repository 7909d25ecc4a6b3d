"""Mentions: from characters to tokens, and texts cut around them."""

import re
import types

import numpy as np
import pytest

from maskedlm.data.labelled.formats.relations import Mention
from maskedlm.finetune.relations import rows


def encode(text):
  found = list(re.finditer(r"\S+", text))
  return types.SimpleNamespace(
    ids=np.array([int(m.group()) for m in found], np.int32),
    offsets=np.array([m.span() for m in found], np.int32).reshape(-1, 2),
  )


# Token i of a text of numbers is 10 + i.
TOKENIZER = types.SimpleNamespace(
  encode=encode, special=types.SimpleNamespace(unk=1)
)


def fit(count, spans, capacity):
  """Cuts a text of `count` tokens around mentions (first and last tokens)."""
  text = " ".join(str(10 + i) for i in range(count))
  made = [Mention(3 * first, 3 * last + 2) for first, last in spans]
  piece = rows.tokenize_around(TOKENIZER, text, made, capacity)
  for (first, last), (a, b) in zip(spans, piece.spans.tolist(), strict=True):
    kept = piece.ids[a : b + 1] - 10
    assert kept[0] == first and kept[-1] <= last
  return piece, (piece.ids - 10).tolist()


def test_a_text_that_fits_is_kept_whole():
  piece, kept = fit(13, [(2, 3), (7, 7)], 13)
  assert kept == list(range(13)) and piece.size == 13
  assert piece.spans.tolist() == [[2, 3], [7, 7]]


def test_a_window_around_the_mentions():
  """Capacity 7; the mentions and the gap take 3, so 2 remain on each side."""
  piece, kept = fit(13, [(6, 6), (4, 5)], 7)
  assert kept == [2, 3, 4, 5, 6, 7, 8] and piece.size == 13
  assert piece.spans.tolist() == [[4, 4], [2, 3]]


@pytest.mark.parametrize(
  ("spans", "expected"),
  [
    ([(0, 0), (2, 2)], [0, 1, 2, 3, 4, 5, 6]),
    ([(11, 11), (12, 12)], [6, 7, 8, 9, 10, 11, 12]),
    ([(3, 3), (9, 9)], [3, 4, 5, 6, 7, 8, 9]),
  ],
)
def test_a_window_at_one_end_takes_more_of_the_other_side(spans, expected):
  assert fit(13, spans, 7)[1] == expected


def test_distant_mentions_keep_the_nearest_tokens():
  """3 to 16 are 14 tokens; of 7, two are on each side of 3, one of 16."""
  piece, kept = fit(20, [(3, 3), (16, 16)], 7)
  assert kept == [1, 2, 3, 4, 15, 16, 17]
  assert piece.spans.tolist() == [[2, 2], [5, 5]]


def test_too_long_mentions_keep_their_first_tokens():
  """11 and 1 tokens: of 6, each may keep 3 and 2 more are near; 12 fit."""
  piece, kept = fit(20, [(2, 12), (15, 15)], 6)
  assert {2, 3, 4, 15} <= set(kept) and len(kept) == 6
  assert piece.spans.tolist()[0] == [kept.index(2), kept.index(4)]
  piece, kept = fit(20, [(2, 12), (15, 15)], 12)
  assert kept == [*range(2, 13), 15]
  assert piece.spans.tolist() == [[0, 10], [11, 11]]


def test_a_long_mention_in_a_text_that_fits_is_whole():
  piece, kept = fit(13, [(1, 11), (2, 3)], 13)
  assert kept == list(range(13))
  assert piece.spans.tolist() == [[1, 11], [2, 3]]


@pytest.mark.parametrize("capacity", range(3, 23))
def test_mentions_are_always_kept(capacity):
  rng = np.random.default_rng(capacity)
  for _ in range(30):
    spans = np.sort(rng.integers(0, 21, (3, 2)), axis=1).tolist()
    piece, kept = fit(21, spans, capacity)
    assert len(kept) == min(capacity, 21)
    assert piece.size == 21


def test_token_spans_of_characters():
  offsets = np.array([[0, 2], [2, 5], [6, 9], [9, 9], [10, 12]])
  assert rows.token_span(offsets, 3, 7) == (1, 2)
  assert rows.token_span(offsets, 2, 5) == (1, 1)
  # No token overlaps: the next one, or the last at the end.
  assert rows.token_span(offsets, 5, 6) == (2, 2)
  assert rows.token_span(offsets, 12, 13) == (4, 4)


def test_a_text_without_tokens_is_unknown():
  piece = rows.tokenize_around(
    TOKENIZER, " \t ", [Mention(0, 1), Mention(1, 2)], 9
  )
  assert piece.ids.tolist() == [1]
  assert piece.spans.tolist() == [[0, 0], [0, 0]] and piece.size == 1
