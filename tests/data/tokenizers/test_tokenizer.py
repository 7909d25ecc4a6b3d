"""Tokenizers: ids are the libraries'; offsets and words are added."""

import unicodedata

import pytest

from helpers.tokenizer_texts import KINDS, ODD, STRANGE
from maskedlm.core.errors import CorpusError


def _spelling(tokenizer, encoding):
  return [tokenizer.tokens(index) for index in encoding.ids]


@pytest.mark.parametrize(("kind", "lowercase"), KINDS)
def test_strange_text_is_accepted(trained, kind, lowercase):
  tokenizer, _ = trained[kind, lowercase]
  batch = tokenizer.encode_batch(STRANGE)
  for text, ids in zip(STRANGE, batch, strict=True):
    encoding = tokenizer.encode(text)
    assert encoding.ids.tolist() == ids.tolist()
    assert (encoding.offsets >= 0).all()
    assert (encoding.offsets <= len(text)).all()
    tokenizer.decode(ids)
  assert tokenizer.encode("").offsets.shape == (0, 2)
  assert tokenizer.encode_batch([]) == []
  assert tokenizer.decode([]) == ""


def _plain(text, lowercase):
  """Returns the text after BERT's normalizer."""
  if lowercase:
    text = unicodedata.normalize("NFD", text)
    text = "".join(c for c in text if unicodedata.category(c) != "Mn").lower()
  return "".join(c for c in text if unicodedata.category(c)[0] != "C")


@pytest.mark.parametrize("lowercase", [True, False])
def test_wordpiece_spans_are_the_tokens(trained, lowercase):
  tokenizer, _ = trained["wordpiece", lowercase]
  checked = 0
  for text in ODD:
    text = text.replace("한국어", "")  # BERT splits syllables into letters.
    encoding = tokenizer.encode(text)
    for token, (a, b) in zip(
      _spelling(tokenizer, encoding), encoding.offsets, strict=True
    ):
      if token != "[UNK]":
        assert _plain(text[a:b], lowercase) == token.removeprefix("##")
        checked += 1
  assert checked > 100


def test_a_split_character_belongs_to_all_its_tokens(trained):
  tokenizer, _ = trained["bpe", False]
  encoding = tokenizer.encode("a \U0001f9ec!")  # Four bytes, never merged.
  assert encoding.offsets.tolist() == [[0, 1], [2, 2], *4 * [[2, 3]], [3, 4]]
  tokenizer, _ = trained["unigram", False]
  encoding = tokenizer.encode("x \u00be.")  # NFKC: 3, fraction slash, 4.
  assert _spelling(tokenizer, encoding)[-2:] == ["4", "."]
  assert encoding.offsets[-4:].tolist() == [[2, 3], [2, 3], [2, 3], [3, 4]]


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
