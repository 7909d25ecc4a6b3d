"""CBOW by gensim, and the words that it is trained on."""

import sys

import numpy as np
import pytest

from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.data.word_vectors import cbow, words

# Cats and dogs stand in the same contexts, and so do one and two.
DOCUMENTS = [
  [f"The {animal} runs home, fast.", f"She counts {number} big apples?"]
  for animal in ("cat", "dog")
  for number in ("one", "two")
] * 40


def train(documents=DOCUMENTS, **options):
  pytest.importorskip("gensim")
  options = {"width": 7, "window": 3, "epochs": 30} | options
  return cbow.train_cbow(documents, cbow.CbowOptions(**options))


def test_words_of_the_same_contexts_are_similar():
  made = train()
  x = dict(zip(made.vectors.words, made.vectors.values, strict=True))

  def cosine(a, b):
    return x[a] @ x[b] / np.linalg.norm(x[a]) / np.linalg.norm(x[b])

  assert cosine("cat", "dog") > max(cosine("cat", "one"), cosine("dog", "two"))
  assert made.vectors.values.shape == (len(x), 7)
  assert made.counts["cat"] == 80 and made.counts["the"] == 160
  again = train()
  np.testing.assert_array_equal(again.vectors.values, made.vectors.values)


def test_rare_words_have_no_vector():
  made = train([*DOCUMENTS, ["a rare rare word"]], min_count=2, epochs=1)
  assert made.counts["word"] == 1
  assert "rare" in made.vectors.words and "word" not in made.vectors.words
  counts = [made.counts[word] for word in made.vectors.words]
  assert counts == sorted(counts, reverse=True)


def test_text_without_a_frequent_word_is_refused():
  with pytest.raises(CorpusError, match="min_count"):
    train([["each word once"]], min_count=2)


def test_without_gensim(monkeypatch):
  monkeypatch.setitem(sys.modules, "gensim.models", None)
  with pytest.raises(ConfigError, match=r"maskedlm\[static\]"):
    cbow.train_cbow(DOCUMENTS, cbow.CbowOptions())


def test_words_and_their_characters():
  text = "Don't\x07 go,  naïve Été 日本語!"
  found = list(words.split_text(text, lowercase=True))
  forms = "don ' t go , naïve été 日本語 !"
  assert " ".join(word.form for word in found) == forms
  spans = [text[word.begin : word.end].strip("\x07") for word in found]
  assert [x.lower() for x in spans] == forms.split()
  (first, *_) = words.split_text(text, lowercase=False)
  assert first == words.Word("Don", 0, 3)
