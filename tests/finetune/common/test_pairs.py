"""Rows of pairs: specials, types, and which tokens give way."""

import types

import numpy as np
import pytest

from maskedlm.finetune.common import text_pairs

PAD, CLS, SEP = 0, 101, 102
TOKENIZER = types.SimpleNamespace(
  special=types.SimpleNamespace(pad=PAD, cls=CLS, sep=SEP)
)
A, B = np.arange(11, 15), np.arange(21, 28)  # 4 and 7 tokens.


def make(a, b, length):
  ids, kinds, lost = text_pairs.pair_row(TOKENIZER, a, b, length)
  assert ids.dtype == kinds.dtype == np.int32
  return ids.tolist(), kinds.tolist(), lost


def test_a_pair():
  ids, kinds, lost = make(A[:2], B[:3], 8)
  assert ids == [CLS, 11, 12, SEP, 21, 22, 23, SEP]
  assert kinds == [0, 0, 0, 0, 1, 1, 1, 1]
  assert not lost


def test_a_single_text():
  assert make(A, None, 6) == ([CLS, 11, 12, 13, 14, SEP], [0] * 6, False)
  assert make(A, None, 5) == ([CLS, 11, 12, 13, SEP], [0] * 5, True)


def test_an_empty_second_text_is_a_pair():
  ids, kinds, lost = make(A[:1], B[:0], 9)
  assert (ids, kinds, lost) == ([CLS, 11, SEP, SEP], [0, 0, 0, 1], False)
  assert make(A[:0], None, 9)[0] == [CLS, SEP]


@pytest.mark.parametrize(
  ("length", "a", "b"),
  [(14, 4, 7), (13, 4, 6), (11, 4, 4), (10, 4, 3), (9, 3, 3), (8, 3, 2)],
)
def test_the_longer_gives_way(length, a, b):
  ids, _, lost = make(A, B, length)
  assert ids == [CLS, *A[:a], SEP, *B[:b], SEP]
  assert lost == (length < 14)


def test_lengths_are_those_of_one_token_at_a_time():
  for a in range(9):
    for b in range(9):
      for total in range(12):
        x, y = a, b
        while x + y > total:
          x, y = (x - 1, y) if x > y else (x, y - 1)
        assert text_pairs.truncated_lengths(a, b, total) == (x, y), (
          a,
          b,
          total,
        )


def test_roberta_puts_two_separators_between_the_texts():
  tokenizer = types.SimpleNamespace(special=types.SimpleNamespace(cls=1, sep=2))
  ids, kinds, lost = text_pairs.pair_row(
    tokenizer, np.array([5, 6, 7]), np.array([8, 9]), 8, separators=2
  )
  assert ids.tolist() == [1, 5, 6, 2, 2, 8, 9, 2]
  assert kinds.tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
  assert lost


def test_an_encoder_of_one_type_or_none():
  for num_types in (1, 0):
    _, kinds, _ = text_pairs.pair_row(TOKENIZER, A, B, 9, num_types=num_types)
    assert kinds.dtype == np.int32 and kinds.tolist() == [0] * 9


def test_texts_in_parts():
  assert text_pairs.text_row(TOKENIZER, A[:1], B[:2]).tolist() == (
    [CLS, 11, 21, 22, SEP]
  )
  tokens = text_pairs.text_tokens(TOKENIZER, [A[:2], B[:0]])
  assert [x.tolist() for x in tokens["input_ids"]] == (
    [[CLS, 11, 12, SEP], [CLS, SEP]]
  )
  assert [x.tolist() for x in tokens["token_type_ids"]] == [[0] * 4, [0] * 2]
  assert all(x.dtype == np.int32 for xs in tokens.values() for x in xs)
