"""Tokenizers: ids are the libraries'; offsets and words are added."""

import re
import unicodedata

import numpy as np
import pytest
import sentencepiece
import tokenizers

from helpers.tokenizer_texts import (
  KINDS,
  ODD,
  SPACED,
  STRANGE,
  words_of,
)
from maskedlm.core.errors import CorpusError
from maskedlm.data.repair import repair


def _library_ids(folder, text):
  """Returns the ids of the library itself for a saved tokenizer."""
  if (folder / "tokenizer.json").exists():
    raw = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    raw.encode_special_tokens = True  # As text.
    return raw.encode(repair(text), add_special_tokens=False).ids
  model = str(folder / "tokenizer.model")
  library = sentencepiece.SentencePieceProcessor(model_file=model)
  return library.encode(repair(text))


def _spelling(tokenizer, encoding):
  return [tokenizer.tokens(index) for index in encoding.ids]


@pytest.mark.parametrize(("kind", "lowercase"), KINDS)
def test_ids_are_the_librarys_own(trained, kind, lowercase):
  tokenizer, folder = trained[kind, lowercase]
  texts = [*ODD, "a [MASK]b <mask>.[SEP] </s> [PAD][UNK]<unk>"]
  batch = tokenizer.encode_batch(texts)
  for text, ids in zip(texts, batch, strict=True):
    encoding = tokenizer.encode(text)
    assert encoding.ids.tolist() == ids.tolist() == _library_ids(folder, text)
    assert {array.dtype for array in (ids, *encoding)} == {np.dtype(np.int32)}
    assert encoding.offsets.shape == (len(ids), 2)


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


@pytest.mark.parametrize(("kind", "lowercase"), KINDS[1::2])
def test_a_megabyte_without_spaces(trained, kind, lowercase):
  tokenizer, _ = trained[kind, lowercase]
  text = "abcdefg" * 150_000
  encoding = tokenizer.encode(text)
  assert encoding.offsets[0, 0] == 0
  assert encoding.offsets[-1, 1] == 1_050_000
  assert encoding.word_ids[-1] == 0
  if kind == "wordpiece":
    assert encoding.ids.tolist() == [tokenizer.special.unk]


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


def test_wordpiece_words(trained):
  tokenizer, folder = trained["wordpiece", True]
  text = " Don't na\u00efve na\u0131\u0308ve,中文 \U0001f600x?"
  assert words_of(text, tokenizer.encode(text)) == [
    *("Don", "'", "t", "na\u00efve", "na\u0131\u0308ve", ","),
    *("中", "文", "\U0001f600x", "?"),
  ]
  raw = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
  for text in ODD:
    peer = raw.encode(text, add_special_tokens=False)
    assert tokenizer.encode(text).word_ids.tolist() == peer.word_ids


@pytest.mark.parametrize(("kind", "lowercase"), SPACED)
def test_spaced_words(trained, kind, lowercase):
  tokenizer, _ = trained[kind, lowercase]
  for text in ODD[:9]:
    text = text.replace("\u0301alone", "alone")  # A word begins with a letter.
    # Scripts without spaces have other words.
    text = re.sub("[\u0e00-\u0fff\u3040-\u9fff]+", "x", text)
    assert words_of(text, tokenizer.encode(text)) == text.split()
  text = "  two  spaces\u00e9 "
  words = [word for word in words_of(text, tokenizer.encode(text)) if word]
  assert words == ["two", "spaces\u00e9"]


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


def test_a_stripped_mark_stays_with_its_letter(trained):
  text = "re\u0301sume\u0301 e\u0323\u0302\u0301x"
  for kind in ("wordpiece", "bpe", "unigram"):
    tokenizer, _ = trained[kind, True]
    encoding = tokenizer.encode(text)
    assert words_of(text, encoding) == text.split()
    # No character is in two tokens, none but the space is in none.
    assert encoding.offsets[:, 0].tolist() == [
      begin + (begin == 8) for begin in [0, *encoding.offsets[:-1, 1]]
    ]


def test_nfc_and_nfd_have_the_same_tokens_over_their_own_text(trained):
  nfc, nfd = "caf\u00e9s \u1ec7", "cafe\u0301s e\u0323\u0302"
  for key in (("wordpiece", True), ("unigram", True), ("unigram", False)):
    tokenizer, _ = trained[key]
    one, other = tokenizer.encode(nfc), tokenizer.encode(nfd)
    assert one.ids.tolist() == other.ids.tolist()
    assert words_of(nfc, one) == ["caf\u00e9s", "\u1ec7"]
    assert words_of(nfd, other) == ["cafe\u0301s", "e\u0323\u0302"]


def test_a_split_character_belongs_to_all_its_tokens(trained):
  tokenizer, _ = trained["bpe", False]
  encoding = tokenizer.encode("a \U0001f9ec!")  # Four bytes, never merged.
  assert encoding.offsets.tolist() == [[0, 1], [2, 2], *4 * [[2, 3]], [3, 4]]
  tokenizer, _ = trained["unigram", False]
  encoding = tokenizer.encode("x \u00be.")  # NFKC: 3, fraction slash, 4.
  assert _spelling(tokenizer, encoding)[-2:] == ["4", "."]
  assert encoding.offsets[-4:].tolist() == [[2, 3], [2, 3], [2, 3], [3, 4]]


def test_byte_level_bpe_loses_nothing(trained):
  tokenizer, _ = trained["bpe", False]
  for text in ODD:
    assert tokenizer.decode(tokenizer.encode(text).ids) == repair(text)


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
