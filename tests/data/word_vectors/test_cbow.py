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
  options = {"vector_size": 7, "window": 3, "epochs": 30, "seed": 0} | options
  options = {"lowercase": True, "min_count": 5} | options
  return cbow.train_cbow(documents, **options)


def test_words_of_the_same_contexts_are_similar():
  vectors, counts = train()
  x = dict(zip(vectors.words, vectors.values, strict=True))

  def cosine(a, b):
    return x[a] @ x[b] / np.linalg.norm(x[a]) / np.linalg.norm(x[b])

  assert cosine("cat", "dog") > max(cosine("cat", "one"), cosine("dog", "two"))
  assert vectors.values.shape == (len(x), 7)
  assert counts["cat"] == 80 and counts["the"] == 160
  again, _ = train()
  np.testing.assert_array_equal(again.values, vectors.values)


def test_rare_words_have_no_vector():
  documents = [*DOCUMENTS, ["a rare rare word"]]
  vectors, counts = train(documents, min_count=2, epochs=1)
  assert counts["word"] == 1
  assert "rare" in vectors.words and "word" not in vectors.words
  found = [counts[word] for word in vectors.words]
  assert found == sorted(found, reverse=True)


def test_text_without_a_frequent_word_is_refused():
  with pytest.raises(CorpusError, match="min_count"):
    train([["each word once"]], min_count=2)


def test_without_gensim(monkeypatch):
  monkeypatch.setitem(sys.modules, "gensim.models", None)
  with pytest.raises(ConfigError, match=r"maskedlm\[static\]"):
    cbow.train_cbow(DOCUMENTS, lowercase=True, min_count=5)


def test_words_and_their_characters():
  text = "Don't\x07 go,  naïve Été 日本語!"
  found = list(words.split_text(text, lowercase=True))
  forms = "don ' t go , naïve été 日本語 !"
  assert " ".join(form for form, _, _ in found) == forms
  spans = [text[begin:end].strip("\x07") for _, begin, end in found]
  assert [x.lower() for x in spans] == forms.split()
  (first, *_) = words.split_text(text, lowercase=False)
  assert first == ("Don", 0, 3)
