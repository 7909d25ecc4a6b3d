"""Normalization, coverage and byte tokens: no script loses text."""

import collections
import itertools
import unicodedata

import numpy as np
import pytest

from helpers.tokenizer_texts import ACCENTED
from maskedlm.core.errors import CorpusError
from maskedlm.data.sources import reader
from maskedlm.data.tokenizers.tokenizer import train_tokenizer

REAL = ("ar", "de", "hi", "ja", "ko", "ru", "vi", "yo", "zh")

# Decomposed, a compatibility ligature, a fullwidth digit.
ODD = "cafe\u0301 ﬁne te\u0302\u0301 ５"


@pytest.mark.parametrize(
  ("form", "expected"),
  [
    ("nfc", "caf\u00e9 ﬁne t\u1ebf"),
    ("nfkc", "caf\u00e9 fine t\u1ebf"),
    ("none", "cafe\u0301 ﬁne te\u0302\u0301"),
  ],
  ids=["nfc", "nfkc", "none"],
)
def test_normalizations(form, expected):
  text = ODD.removesuffix(" ５")
  options = {"byte_fallback": True} if form == "none" else {}
  lines = [*ACCENTED, text]
  made = train_tokenizer(
    lines,
    kind="unigram",
    vocab_size=376 if options else 120,
    lowercase=False,
    normalization=form,
    character_coverage=1.0,
    **options,
  )
  assert made.decode(made.encode(text).ids) == expected
  byte_level = train_tokenizer(
    ACCENTED, kind="bpe", vocab_size=300, lowercase=False, normalization=form
  )
  assert byte_level.decode(byte_level.encode(text).ids) == expected


def test_a_lowercasing_unigram_is_normalized():
  with pytest.raises(
    CorpusError, match="normalization='none': a lowercasing unigram"
  ):
    train_tokenizer(
      ACCENTED,
      kind="unigram",
      vocab_size=40,
      lowercase=True,
      normalization="none",
    )


def test_byte_tokens_spell_unknown_characters():
  made = train_tokenizer(
    ACCENTED,
    kind="unigram",
    vocab_size=376,
    lowercase=False,
    byte_fallback=True,
  )
  text = "fine \u6f22 five"
  encoding = made.encode(text)
  tokens = [made.tokens(i) for i in encoding.ids]
  assert [t for t in tokens if t.startswith("<0x")] == [
    "<0xE6>",
    "<0xBC>",
    "<0xA2>",
  ]
  assert made.special.unk not in encoding.ids
  assert made.decode(encoding.ids) == text
  at = [i for i, t in enumerate(tokens) if t.startswith("<0x")]
  assert {tuple(encoding.offsets[i]) for i in at} == {(5, 6)}
  # A letter of a script without spaces begins a word with its first byte.
  assert made.starts_word[encoding.ids[at]].tolist() == [True, False, False]
  np.testing.assert_array_equal(made.encode_batch([text])[0], encoding.ids)
  # The spelling of a byte token in a text is not a byte.
  assert made.decode(made.encode("a <0xE6> b").ids) == "a <0xE6> b"


@pytest.fixture(scope="module")
def real(data_dir):
  """Maps a language to 50 lines of its text."""
  texts = {}
  for name in REAL:
    path = data_dir / "multilingual" / f"{name}.txt"
    found = reader.read_documents(
      f"text:{path}", text_field="text", report=collections.Counter()
    )
    texts[name] = list(
      itertools.islice(itertools.chain.from_iterable(found), 50)
    )
  return texts


@pytest.fixture(scope="module")
def unigrams(real):
  """Maps a normalization to a unigram with every character of the text."""
  lines = [line for text in real.values() for line in text]
  return {
    form: train_tokenizer(
      lines,
      kind="unigram",
      vocab_size=5_500,
      lowercase=False,
      normalization=form,
      character_coverage=1.0,
    )
    for form in ("nfc", "nfkc", "none")
  }


def spaced(text):
  return " ".join(text.split())


@pytest.mark.parametrize("name", REAL)
def test_decoding_returns_real_text(name, real, unigrams):
  for form, made in unigrams.items():
    for line in real[name]:
      expected = spaced(line)
      if form != "none":
        # sentencepiece keeps the fullwidth tilde of Japanese.
        expected = "\uff5e".join(
          unicodedata.normalize(form.upper(), part)
          for part in expected.split("\uff5e")
        )
      encoding = made.encode(line)
      assert made.decode(encoding.ids) == spaced(expected)
      # The spans of the tokens cover all but spaces.
      covered = {i for a, b in encoding.offsets for i in range(a, b)}
      missing = [line[i] for i in range(len(line)) if i not in covered]
      assert not "".join(missing).strip()


@pytest.mark.parametrize("name", ["vi", "hi", "yo", "ko"])
def test_decomposed_text_is_the_same_text(name, real, unigrams):
  # NFD text with an NFC vocabulary: the same tokens, correct offsets.
  made = unigrams["nfc"]
  for line in real[name]:
    apart = unicodedata.normalize("NFD", line)
    one, other = made.encode(line), made.encode(apart)
    np.testing.assert_array_equal(one.ids, other.ids)
    for (a, b), (c, d) in zip(one.offsets, other.offsets, strict=True):
      assert unicodedata.normalize("NFC", line[a:b]) == unicodedata.normalize(
        "NFC", apart[c:d]
      )
