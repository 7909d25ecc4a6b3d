"""Instances of words by hand, and their vectors from those of tokens."""

import numpy as np

from maskedlm.data.labelled import text_lines
from maskedlm.data.labelled.text_lines import Text
from maskedlm.inference.vectors import vectors
from maskedlm.inference.word_senses import word_instances
from maskedlm.inference.word_senses.data import Sentence, TargetWord


def places(text, *words):
  return [
    (x.begin, x.end) for x in word_instances.find_instances([Text(text)], words)
  ]


def test_whole_words_ignoring_case():
  text = "Bank of the riverbank: the bank's banks, BANK, bank_2, (bank)."
  found = places(text, "bank")
  assert [text[b:e] for b, e in found] == ["Bank", "bank", "BANK", "bank"]
  assert found == [(0, 4), (27, 31), (41, 45), (56, 60)]
  assert places("banks", "bank") == places("", "bank") == []


def test_several_words_and_longer_names():
  text = "New York is new. In new york the Bank is old, the bank new."
  found = list(
    word_instances.find_instances([Text(text)], [" bank ", "new", "new york"])
  )
  assert [(x.begin, x.word) for x in found] == [
    (0, "new york"),
    (12, "new"),
    (20, "new york"),
    (33, "bank"),
    (50, "bank"),
    (55, "new"),
  ]
  # Where the longer one isn't a whole word, the shorter one is.
  text = "New Yorkers love New York. A new day."
  found = list(word_instances.find_instances([Text(text)], ["New York", "new"]))
  assert [(x.begin, x.word) for x in found] == [
    (0, "new"),
    (17, "New York"),
    (29, "new"),
  ]
  assert word_instances.distinct_words(["Bank", "bank", " river"]) == [
    "Bank",
    "river",
  ]


def test_letters_accents_and_scripts():
  # बैंक continues in बैंकों with vowel signs, which are not letters.
  assert places("बैंक और बैंकों", "बैंक") == [(0, 4)]
  assert places("cafe\u0301 cafe", "cafe") == [(6, 10)]
  assert places("Übung, übung", "ÜBUNG") == [(0, 5), (7, 12)]
  # Chinese and Japanese have no spaces between words.
  assert places("在中国银行工作", "银行") == [(3, 5)]
  assert places("在bank里, xbank", "bank") == [(1, 5)]
  # Joined by an invisible character.
  assert places("می\u200cخواهم", "می") == []


def test_words_with_senses():
  words = ("The", "Banks", "banked", "on", "the", "bank", ".")
  targets = (
    TargetWord("t0", 1, "bank", "NOUN", ("bank.money", "bank.house")),
    TargetWord("t1", 2, "bank", "VERB", ("bank.trust",)),
    TargetWord("t2", 5, "bank", "NOUN", ()),  # Unknown senses are left out.
  )
  sentence = Sentence(words, targets, "d0", "semcor.tsv", 17)
  found = list(word_instances.find_labelled_instances([sentence], ["Bank"]))
  text = "The Banks banked on the bank ."
  assert [(x.begin, x.end, x.label) for x in found] == [
    (4, 9, "noun bank.money"),
    (10, 16, "verb bank.trust"),
  ]
  assert found[0].text.text == text and found[0].text.words == words
  assert (found[0].text.file, found[0].text.line) == ("semcor.tsv", 17)
  assert found[0].text is found[1].text and found[0].word == "Bank"
  # The form in the text matches as well.
  assert (
    len(list(word_instances.find_labelled_instances([sentence], ["banked"])))
    == 1
  )
  assert not list(
    word_instances.find_labelled_instances([sentence], ["the", "river"])
  )


def test_the_vector_is_the_mean_of_the_words_tokens(model):
  texts = [
    Text("the cat sat on the house , the house ran", file="a.txt", line=3),
    text_lines.text_of_words(["a", "roasted", "in", "the", "house"]),
    Text("house " * 60),  # Longer than the encoder, so read in windows.
  ]
  options = vectors.VectorOptions(layers=(-1, 0), combine="concat")
  found = list(word_instances.find_instances(texts, ["house", "roasted"]))
  assert len(found) == 2 + 2 + 60
  kept, values = word_instances.embed_instances(model, found, options)
  assert kept == found and values.shape == (64, 48)
  tokens = vectors.collect(vectors.embed(model, texts, options))
  for instance, value in zip(found, values, strict=True):
    own = [
      i
      for i, (begin, end) in enumerate(tokens.offsets)
      if tokens.sources[i] is instance.text
      and begin < instance.end
      and end > instance.begin
    ]
    assert own
    np.testing.assert_allclose(value, tokens.values[own].mean(0), atol=1e-5)
  # This word has several tokens.
  roasted = (tokens.texts == 1) & (tokens.offsets[:, 0] == 2)
  assert roasted.sum() > 1
  # Equal to the vectors of unit "word".
  words = vectors.collect(
    vectors.embed(model, texts[:1], options._replace(unit="word"))
  )
  np.testing.assert_allclose(values[0], words.values[5], atol=1e-5)
