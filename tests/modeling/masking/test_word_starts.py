"""Which tokens begin a word: by hand, and as each tokenizer counts words."""

import numpy as np
import pytest

from maskedlm.data.tokenizers.tokenizer import train_tokenizer
from maskedlm.modeling.masking import spans, tokens

PAD, UNK, CLS, SEP, MASK = range(5)
V = 97
IS_SPECIAL = np.arange(V) < 5
STARTS_WORD = np.arange(V) < 60  # Ids from 60 on continue a word.


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
