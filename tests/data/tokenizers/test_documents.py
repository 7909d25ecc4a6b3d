"""A document's ids are those of the library for its text, cut into sentences.

Every kind of tokenizer is compared with its library.
"""

import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from helpers import tokenizer_kinds
from helpers.tokenizer_kinds import SCRIPTS
from maskedlm.data.sources import sentences
from maskedlm.data.tokenizers import documents
from maskedlm.data.tokenizers.document_text import make_text


def split(lines, tokenizer, mode="split"):
  return make_text(lines, tokenizer, mode=mode, language="en", report=Counter())


def check(texts, tokenizer, library_ids):
  """Checks ids against the library, and the sentences against offsets."""
  report = Counter()
  encoded = tokenizer.encode_documents(texts, report)
  for text, (ids, counts) in zip(texts, encoded, strict=True):
    assert ids.tolist() == library_ids(text.text), text.text
    assert len(counts) == len(text.spans) and counts.sum() == len(ids)
    begins = tokenizer.encode(text.text).offsets[:, 0]
    # Whitespace is counted to the sentence after it.
    bounds = [0, *(end for _, end in text.spans[:-1]), len(text.text) + 1]
    if text.spans:
      expected = np.histogram(begins, bounds)[0]
      assert counts.tolist() == expected.tolist(), text.text
  assert not report


@pytest.mark.parametrize("name", tokenizer_kinds.NAMES)
def test_documents_have_the_ids_of_the_library(any_kind, name):
  tokenizer, library_ids = any_kind(name)
  for mode in ("split", "lines"):
    texts = [split(lines, tokenizer, mode) for lines in SCRIPTS.values()]
    texts.append(split([], tokenizer, mode))
    check(texts, tokenizer, library_ids)


ALPHABET = st.one_of(
  st.sampled_from(list("ab .?!。\t\xa0\u3000\u0301▁Ġ我学กあ😀\ufb01½…'\"")),
  st.characters(blacklist_categories=["Cs", "Cc", "Cn"]),
)
LINES = st.lists(
  st.builds(
    lambda space, text: space + text,
    st.sampled_from(["", "", " ", "    ", "\t", "  \t "]),
    st.text(ALPHABET, max_size=40),
  ),
  max_size=3,
)


@pytest.mark.parametrize("name", tokenizer_kinds.NAMES)
def test_random_documents_have_the_ids_of_the_library(any_kind, name):
  tokenizer, library_ids = any_kind(name)

  @settings(max_examples=15, deadline=None, derandomize=True)
  @given(LINES)
  def run(lines):
    # A unigram of `tokenizers` takes the spelling of a special token for it.
    specials = {tokenizer.tokens(i) for i in tokenizer.special_ids} - {""}
    assume(not any(name in line for name in specials for line in lines))
    assume(any(map(str.strip, lines)) or not lines)
    check([split(lines, tokenizer)], tokenizer, library_ids)

  run()


# Long documents


def long_lines(size):
  rng = np.random.default_rng(5)
  every = [line for lines in SCRIPTS.values() for line in lines]
  every = [line for line in every if len(line) < 200]
  lines = []
  while sum(map(len, lines)) < size:
    lines.append(" ".join(rng.choice(every, 3)))
  return lines


@pytest.mark.parametrize("name", tokenizer_kinds.NAMES)
def test_windows_have_the_ids_of_the_whole(any_kind, name, monkeypatch):
  tokenizer, library_ids = any_kind(name)
  texts = [split(long_lines(9_000), tokenizer)]
  whole = tokenizer.encode_documents(texts, Counter())
  monkeypatch.setattr(documents, "WINDOW", 700)
  check(texts, tokenizer, library_ids)
  found = tokenizer.encode_documents(texts, Counter())
  np.testing.assert_array_equal(found[0][1], whole[0][1])


def test_windows_that_disagree_are_made_larger(any_kind, monkeypatch):
  # A sentence is no multiple of the tokens of a long run, so those of a window
  # depend on its beginning.
  monkeypatch.setattr(sentences, "MAX_SENTENCE", 3_999)
  tokenizer, library_ids = any_kind("gemma")
  long = "y" * 41_003
  assert 3_999 % len(tokenizer.tokens(library_ids(long)[9]))
  text = split(["The cat. " + long + " The dog."], tokenizer)
  monkeypatch.setattr(documents, "WINDOW", 9_000)
  check([text], tokenizer, library_ids)
  monkeypatch.setattr(documents, "MAX_WINDOW", 9_000)
  report = Counter()
  ((ids, counts),) = tokenizer.encode_documents([text], report)
  assert report == {"cuts in texts over 9,000 characters": 5}
  assert counts.sum() == len(ids)
  spelt = "".join(map(tokenizer.tokens, ids.tolist()))
  assert spelt.replace("▁", " ") == text.text


def test_a_document_of_a_single_word_takes_linear_time(any_kind):
  tokenizer, _ = any_kind("byte-level, no prefix")
  times = []
  for size in (50_000, 400_000):
    text = split(["ab" * (size // 2)], tokenizer)
    start = time.process_time()
    tokenizer.encode_documents([text], Counter())
    times.append(time.process_time() - start)
  assert times[1] < 40 * max(times[0], 0.02)  # 8 if it is linear.
