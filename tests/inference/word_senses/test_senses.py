"""Sense embeddings, nearest senses and scores, by hand."""

import numpy as np
import pytest

from helpers import finetune_runs, vector_encoder
from maskedlm.core.errors import ConfigError
from maskedlm.inference.vectors import vectors
from maskedlm.inference.word_senses import scores, senses
from maskedlm.inference.word_senses.data import Sentence, TargetWord
from maskedlm.inference.word_senses.senses import Answer, Senses

CLOSE = {"atol": 1e-4, "rtol": 1e-4}
# Four senses in two dimensions; "new" only has a first sense.
SENSES = Senses(
  names=("n.1", "n.2", "n.3", "v.1", "new.1"),
  vectors=np.float32([[2, 0], [0, 1], [0, 5], [-3, -4]]),
  examples=("a *b* c", "*b*", "*b* d", "*bs*"),
  candidates={
    ("b", "NOUN"): {1: 7, 0: 2, 2: 1},
    ("b", "VERB"): {3: 3},
    ("new", "ADJ"): {4: 0},
  },
  forms={"bs": (("b", "NOUN"), ("b", "VERB")), "b": (("b", "NOUN"),)},
  about={"layers": [2, 1], "combine": "sum", "encoder": "0"},
)


def asked(lemma="", pos="", form="b", gold=()):
  target = TargetWord("t", 0, lemma, pos, gold)
  return Sentence((form,), (target,), "", "", 0), target


def test_the_mark_of_a_word_that_begins_with_a_space():
  """A column may; by its asterisks, `plot senses` finds the word again."""
  assert senses.format_context(*asked(form=" bank")) == "*bank*"


def rank(x, **question):
  return senses.make_ranker(SENSES)(*asked(**question), np.float32(x))


def test_ranking_by_cosine():
  # cos([4, 3], .) = 0.8 with [2, 0], 0.6 with both [0, 1] and [0, 5].
  made = rank([4, 3], lemma="b", pos="NOUN")
  # Of equal scores the more frequent sense comes first, n.2 (7) before n.3.
  assert made.senses == (0, 1, 2) and made.most_frequent == 1
  np.testing.assert_allclose(made.scores, [0.8, 0.6, 0.6], atol=1e-7)
  assert rank([0, 2], lemma="b", pos="NOUN").senses == (1, 2, 0)
  # Only the senses of this lemma and part of speech are candidates.
  made = rank([4, 3], lemma="b", pos="VERB")
  assert made.senses == (3,) and made.scores == pytest.approx([-0.96])
  # A zero vector ranks by frequency.
  assert rank([0, 0], lemma="b", pos="NOUN") == Answer((1, 0, 2), (0, 0, 0), 1)


def test_candidates_if_lemma_or_part_of_speech_is_unknown():
  found = lambda **question: senses.find_candidates(  # noqa: E731
    SENSES, asked(**question)[1], question.get("form", "b")
  )
  assert found(lemma="b", pos="NOUN") == [1, 0, 2]
  assert found(lemma="b") == [1, 3, 0, 2]  # Counts 7, 3, 2, 1.
  assert found(form="Bs") == [1, 3, 0, 2]
  assert found(form="B") == [1, 0, 2]
  assert found(form="bs", pos="VERB") == [3]
  assert found(form="NEW") == [4]  # Never seen: found by its lemma.
  assert found(lemma="b", pos="ADV") == found(form="c") == []
  assert found(lemma="B", pos="NOUN") == []


def test_scores_by_hand():
  questions = [
    # The second key is correct too; the most frequent sense isn't.
    (asked("b", "NOUN", gold=("n.9", "n.1")), [4, 3]),
    (asked("b", "NOUN", gold=("n.2",)), [4, 3]),  # The reverse.
    (asked("b", "VERB", gold=("v.1",)), [4, 3]),
    (asked("c", "NOUN", gold=("c.1",)), [4, 3]),  # Unknown.
    (asked("new", "ADJ", gold=("new.1",)), [4, 3]),
    (asked("b", "X", gold=("n.2",)), [4, 3]),
  ]
  ranker = senses.make_ranker(SENSES)
  answered = [
    (target, ranker(sentence, target, np.float32(x)))
    for (sentence, target), x in questions
  ]
  counts = scores.count_answers(SENSES, answered[:2])
  counts.update(scores.count_answers(SENSES, answered[2:]))
  assert counts["ALL", "fallback"] == 1
  lines = {line.name: line for line in scores.make_rows(counts)}
  assert list(lines) == ["NOUN", "VERB", "ADJ", "other", "ALL", "ambiguous"]
  half = (1, 2, 3)  # P 1/2, R 1/3, F1 2/5.
  assert lines["NOUN"] == ("NOUN", 3, 1, half, half)
  assert lines["other"][1:3] == (1, 1)
  assert lines["ambiguous"][1:3] == (2, 0)
  assert lines["ALL"].nearest == (3, 4, 6)
  text = scores.format_rows(lines.values()).splitlines()
  assert text[1].split() == ["NOUN", "3", "1", *("50.0", "33.3", "40.0") * 2]
  assert len({len(line) for line in text}) == 1


def of(words, *targets):
  """Returns a sentence; targets are (place, sense, lemma)."""
  made = tuple(
    TargetWord(f"t{i}", place, lemma, "NOUN", tuple(sense.split()))
    for i, (place, sense, lemma) in enumerate(targets)
  )
  return Sentence(tuple(words.split()), made, "d", "f", 1)


def by_hand(model, words, place):
  """Returns the sum of the last two layers, averaged over the word's tokens."""
  ids = [model.tokenizer.encode(word).ids for word in words.split()]
  begin = sum(map(len, ids[:place])) + 1
  layers = vector_encoder.by_hand(model, np.concatenate(ids))
  return layers[1:].sum(0)[begin : begin + len(ids[place])].mean(0)


def test_sense_embeddings_are_means(model):
  first, second = finetune_runs.TEXTS[0], finetune_runs.TEXTS[3]
  last = len(second.split()) - 1
  sentences = [
    # Targets at both ends of a sentence, and two in one sentence.
    of(first, (0, "a.1", "a"), (1, "a.2 a.1", "a")),
    of(finetune_runs.TEXTS[1]),
    of(second, (last, "a.1", "a"), (0, "b.1", "b")),
  ]
  options = senses.word_vector_options(model.cfg)
  assert options == vectors.VectorOptions("word", "mean", (-1, -2), "sum")
  counts = []
  made = senses.train_senses(
    model._replace(batch_tokens=16),
    iter(sentences),
    options,
    first_senses={("a", "NOUN"): "a.2", ("c", "VERB"): "c.1"},
    progress=counts.append,
  )
  assert made.names == ("a.1", "a.2", "b.1", "c.1") and counts[-1] == 4
  x = [by_hand(model, first, 0), by_hand(model, first, 1)]
  y = [by_hand(model, second, last), by_hand(model, second, 0)]
  expected = [(x[0] + x[1] + y[0]) / 3, x[1], y[1]]
  np.testing.assert_allclose(made.vectors, expected, **CLOSE)
  assert made.candidates == {
    ("a", "NOUN"): {0: 3, 1: 1},
    ("b", "NOUN"): {2: 1},
    ("c", "VERB"): {3: 0},
  }
  assert made.forms["the"] == (("a", "NOUN"),) == made.forms["million"]
  assert made.examples[0] == "*the* cat sat on the mat and ..."
  assert made.examples[1] == "the *cat* sat on the mat and the ..."
  assert made.about["targets"] == 4 and made.about["layers"] == [2, 1]


def test_save_and_load(tmp_path):
  path = tmp_path / "senses.npz"
  senses.save_senses(path, SENSES)
  made = senses.load_senses(path)
  np.testing.assert_array_equal(made.vectors, SENSES.vectors)
  assert made._replace(vectors=0) == SENSES._replace(vectors=0)
  assert list(made.candidates["b", "NOUN"]) == [1, 0, 2]
  path.write_bytes(path.read_bytes()[:200])
  with pytest.raises(ConfigError, match="not written by `maskedlm word-se"):
    senses.load_senses(path)
