"""Offsets are places in the text, whatever its characters are."""

import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from helpers import tokenizer_kinds
from helpers.tokenizer_texts import ODD_TEXTS
from maskedlm.data.repair import repair

# They drop accents, or have tokens of several words.
STRIPPING = ("wordpiece, lowercase", "albert")
ACROSS = ("no regex", "one piece", "llama", "gemma", "across spaces", "marks")
SHOWN = {"L", "N", "P", "S", "M"}  # Categories of visible characters.


def kind(character):
  return unicodedata.category(character)[0]


@pytest.mark.parametrize("name", tokenizer_kinds.NAMES)
def test_tokens_cover_the_text_in_order(any_kind, name):
  tokenizer, _ = any_kind(name)
  shown = SHOWN - {"M"} if name in STRIPPING else SHOWN

  @settings(max_examples=15, deadline=None, derandomize=True)
  @given(ODD_TEXTS)
  @example("a▁b")
  @example("▁")
  def run(text):
    encoding = tokenizer.encode(text)
    begins, ends = encoding.offsets.T
    assert (begins >= 0).all() and (begins <= ends).all()
    assert (ends <= len(text)).all()
    assert (np.diff(begins) >= 0).all() and (np.diff(ends) >= 0).all()
    covered = np.zeros(len(text), bool)
    for begin, end in encoding.offsets:
      assert text[begin:end] == text[begin:end].strip()
      covered[begin:end] = True
    lost = [c for c, found in zip(text, covered, strict=True) if not found]
    # The library reads "▁", its own mark, as a space.
    mark = "▁" if name in tokenizer_kinds.MODELS else ""
    lost = [c for c in lost if not (c.isspace() or c in mark)]
    if name == "albert":  # An accent alone, as "¸", is a space that has one.
      lost = [c for c in lost if unicodedata.normalize("NFKD", c)[0] != " "]
    assert not [c for c in lost if kind(c) in shown]

  run()


@pytest.mark.parametrize(
  "name", [n for n in tokenizer_kinds.NAMES if not n.endswith(ACROSS)]
)
def test_words_end_at_spaces(any_kind, name):
  """Each word between spaces begins one, and none has a space in it."""
  tokenizer, _ = any_kind(name)

  @settings(max_examples=15, deadline=None, derandomize=True)
  @given(st.lists(st.text("abcdé我カไ한שل.", min_size=1), min_size=1))
  def run(words):
    text = " ".join(words)
    encoding = tokenizer.encode(text)
    words_of = encoding.word_ids
    assert (np.diff(words_of) >= 0).all() and words_of[0] == 0
    firsts = np.flatnonzero(np.diff(words_of, prepend=-1))
    begins = set(encoding.offsets[firsts, 0].tolist())
    sizes = np.array([len(word) + 1 for word in words])
    assert {0, *np.cumsum(sizes)[:-1].tolist()} <= begins

  run()


@pytest.mark.parametrize("name", tokenizer_kinds.NAMES)
def test_a_repaired_text_has_the_ids_and_places_of_the_given(any_kind, name):
  tokenizer, _ = any_kind(name)
  given = "\ufeffa\0 c\x97at\r\nb\ud800 \0"
  clean = repair(given)
  assert clean == "a c at\nb\ufffd "
  a, b = map(tokenizer.encode, (given, clean))
  np.testing.assert_array_equal(a.ids, b.ids)
  np.testing.assert_array_equal(*tokenizer.encode_batch([given, clean]))
  for (begin, end), (low, high) in zip(a.offsets, b.offsets, strict=True):
    assert repair(given[begin:end]).strip() == clean[low:high]
