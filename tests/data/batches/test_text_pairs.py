"""Rows of texts and pairs: specials, types, and which tokens are cut."""

from types import SimpleNamespace

import numpy as np
import pytest

from maskedlm.data.batches import text_pairs

PAD, CLS, SEP = 0, 101, 102
TOKENIZER = SimpleNamespace(special=SimpleNamespace(pad=PAD, cls=CLS, sep=SEP))
A, B = np.arange(11, 15), np.arange(21, 28)  # 4 and 7 tokens.


def make(a, b, length):
  ids, types, size = text_pairs.pair_row(TOKENIZER, a, b, length)
  assert ids.dtype == types.dtype == np.int32
  return ids.tolist(), types.tolist(), size


def test_a_pair():
  ids, types, size = make(A[:2], B[:3], 8)
  assert ids == [CLS, 11, 12, SEP, 21, 22, 23, SEP]
  assert types == [0, 0, 0, 0, 1, 1, 1, 1]
  assert size == 8


def test_a_single_text():
  assert make(A, None, 6) == ([CLS, 11, 12, 13, 14, SEP], [0] * 6, 6)
  assert make(A, None, 5) == ([CLS, 11, 12, 13, SEP], [0] * 5, 6)


@pytest.mark.parametrize(
  ("length", "a", "b"),
  [(14, 4, 7), (13, 4, 6), (11, 4, 4), (10, 4, 3), (9, 3, 3), (8, 3, 2)],
)
def test_the_longer_text_is_cut(length, a, b):
  ids, _, size = make(A, B, length)
  assert ids == [CLS, *A[:a], SEP, *B[:b], SEP]
  assert size == 14 and len(ids) == min(length, 14)


def test_roberta_puts_two_separators_between_the_texts():
  tokenizer = SimpleNamespace(special=SimpleNamespace(cls=1, sep=2))
  ids, types, size = text_pairs.pair_row(
    tokenizer, np.array([5, 6, 7]), np.array([8, 9]), 8, separators=2
  )
  assert ids.tolist() == [1, 5, 6, 2, 2, 8, 9, 2]
  assert types.tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
  assert size == 9


def test_an_encoder_of_one_type_or_none():
  for num_types in (1, 0):
    _, types, _ = text_pairs.pair_row(TOKENIZER, A, B, 9, num_types=num_types)
    assert types.dtype == np.int32 and types.tolist() == [0] * 9


def test_single_texts():
  assert text_pairs.text_row(TOKENIZER, A[:1], B[:2]).tolist() == (
    [CLS, 11, 21, 22, SEP]
  )
  tokens = text_pairs.text_tokens(TOKENIZER, [A[:2], B[:0]])
  assert [x.tolist() for x in tokens["input_ids"]] == (
    [[CLS, 11, 12, SEP], [CLS, SEP]]
  )
  assert [x.tolist() for x in tokens["token_type_ids"]] == [[0] * 4, [0] * 2]
  assert all(x.dtype == np.int32 for xs in tokens.values() for x in xs)
