"""One sense per discourse, by hand."""

from maskedlm.inference.word_senses import discourse
from maskedlm.inference.word_senses.data import Sentence, TargetWord
from maskedlm.inference.word_senses.senses import Answer


def answered(document, lemma, gold, senses, scores, form="x"):
  target = TargetWord("t", 0, lemma, "NOUN", gold)
  sentence = Sentence((form,), (target,), document, "f", 1)
  return sentence, target, Answer(senses, scores, 0)


FOUND = [
  answered("d0", "cat", ("a",), (0, 1), (0.75, 0.5)),
  answered("d0", "dog", ("c",), (2,), (0.5,)),
  answered("d0", "cat", ("b",), (1, 0), (0.875, 0.25)),
  answered("d0", "cow", ("d",), (3,), ()),  # A first sense.
  answered("d1", "cat", ("a",), (0, 1), (0.75, 0.5)),
  answered("d1", "cat", ("a", "b"), (0, 1), (0.75, 0.0)),
]


def test_the_highest_mean_cosine_in_a_document():
  made = list(discourse.agree_in_documents(iter(FOUND)))
  assert [each[:2] for each in made] == [each[:2] for each in FOUND]
  # In d0 (0.5 + 0.875) / 2 is more than (0.75 + 0.25) / 2.
  agreed = Answer((1, 0), (0.6875, 0.5), 0)
  assert [made[0][2], made[2][2]] == [agreed, agreed]
  assert [made[1], made[3]] == [FOUND[1], FOUND[3]]
  assert made[5][2] == made[4][2] == Answer((0, 1), (0.75, 0.25), 0)


def test_the_rule_counts_ambiguous_words():
  # "cat" has two senses in d0, and in d1 the sense a is correct throughout.
  assert discourse.measure_rule(FOUND) == (2, 1)
