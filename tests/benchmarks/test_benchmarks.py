"""Tests the measures that some benchmarks compute; test_run.py runs scripts."""

import jax  # noqa: F401 - first, so that allocator.py doesn't restart pytest.
import numpy as np
import wic_pairs

from maskedlm.inference.word_senses.data import Sentence, TargetWord


def test_pairs_of_senses_by_hand():
  def sentence(words, *targets):
    made = (
      TargetWord("", words.split(" ").index(word), *known, (sense,))
      for word, known, sense in targets
    )
    return Sentence(tuple(words.split(" ")), tuple(made), "", "", 0)

  bank, run = ("bank", "NOUN"), ("run", "VERB")
  sentences = [
    sentence("a bank rose", ("bank", bank, "s1")),
    sentence("my banks ran", ("banks", bank, "s2"), ("ran", run, "r1")),
    sentence("the old bank", ("bank", bank, "s1")),
    sentence("her bank", ("bank", bank, "s1")),
    sentence("they run", ("run", run, "r2")),  # No two of the same sense.
    sentence("a bank rose", ("bank", bank, "s1")),
    sentence("big bank", ("bank", ("bank", "ADJ"), "s9")),
  ]
  places = wic_pairs.find_places(sentences)
  assert [len(of) for of in places.values()] == [5, 2]
  assert places[bank][1] == ("my banks ran", 1, "s2")
  pairs = list(wic_pairs.choose_pairs(places, np.random.default_rng(0)))
  assert [word for word, _, _ in pairs] == [bank, bank]
  assert [a.sense == b.sense for _, a, b in pairs] == [True, False]
  used = [each.sentence for _, *pair in pairs for each in pair]
  assert len(set(used)) == 4
