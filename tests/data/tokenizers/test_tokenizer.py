"""Tokenizers: words and offsets that are added to the ids, and decoding."""

import numpy as np
import pytest

from helpers.tokenizer_texts import KINDS, ODD
from maskedlm.core.errors import CorpusError


def _spelling(tokenizer, encoding):
  return [tokenizer.tokens(index) for index in encoding.ids]


def test_a_split_character_belongs_to_all_its_tokens(trained):
  tokenizer, _ = trained["bpe", False]
  encoding = tokenizer.encode("a \U0001f9ec!")  # Four bytes, never merged.
  assert encoding.offsets.tolist() == [[0, 1], [2, 2], *4 * [[2, 3]], [3, 4]]
  tokenizer, _ = trained["unigram", False]
  encoding = tokenizer.encode("x \u00be.")  # NFKC: 3, fraction slash, 4.
  assert _spelling(tokenizer, encoding)[-2:] == ["4", "."]
  assert encoding.offsets[-4:].tolist() == [[2, 3], [2, 3], [2, 3], [3, 4]]


@pytest.mark.parametrize(("kind", "lowercase"), KINDS)
def test_words_begin_at_starts_word(trained, kind, lowercase):
  tokenizer, _ = trained[kind, lowercase]
  for text in ODD:
    encoding = tokenizer.encode(text)
    begins = np.diff(encoding.word_ids, prepend=-1)
    starts = tokenizer.starts_word[encoding.ids]
    assert begins[1:].tolist() == starts[1:].tolist()
    assert begins[0] == 1
  assert tokenizer.starts_word.shape == (1009,)


def test_decode_shows_special_tokens(trained):
  for key in KINDS:
    tokenizer, _ = trained[key]
    ids = tokenizer.encode("the value").ids.tolist()
    special = tokenizer.special
    text = tokenizer.decode([special.cls, *ids, special.mask, special.sep])
    for index in (special.cls, special.mask, special.sep):
      assert tokenizer.tokens(index) in text
    assert "the value" in text
    with pytest.raises(CorpusError, match=r"3 to 1009.* 0 to 1008"):
      tokenizer.decode([3, 1009])
