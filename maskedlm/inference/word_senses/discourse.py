"""One sense per discourse: a word keeps its sense within a document.

Gale, Church & Yarowsky (1992, https://aclanthology.org/H92-1045). The
occurrences of a word in a document get the sense whose mean cosine with their
vectors is highest.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from maskedlm.inference.word_senses.data import Sentence, TargetWord
from maskedlm.inference.word_senses.senses import Answer

Answered = tuple[Sentence, TargetWord, Answer]


def agree_in_documents(answered: Iterable[Answered]) -> Iterator[Answered]:
  """Yields targets in order, with the same answer for a word in a document.

  A document's sentences follow each other; one document is held in memory.
  Words are the same if lemma (or, if unknown, form), part of speech and
  candidates are. Answers without a cosine stay as they are.
  """
  for _, of_document in itertools.groupby(
    answered, key=lambda each: each[0].document
  ):
    yield from _agree(list(of_document))


def _agree(answered: list[Answered]) -> list[Answered]:
  words: defaultdict[tuple, list[int]] = defaultdict(list)
  for i, (sentence, target, answer) in enumerate(answered):
    if answer.scores:
      word = target.lemma or sentence.words[target.word].casefold()
      words[word, target.pos, frozenset(answer.senses)].append(i)
  agreed = list(answered)
  for places in words.values():
    if len(places) < 2:
      continue
    total: defaultdict[int, float] = defaultdict(float)
    for i in places:
      answer = answered[i][2]
      for sense, score in zip(answer.senses, answer.scores, strict=True):
        total[sense] += score
    # Ties stay in the order of the first answer: the more frequent first.
    senses = np.array(answered[places[0]][2].senses)
    means = np.array([total[sense] for sense in senses]) / len(places)
    order = np.argsort(-means, kind="stable")
    for i in places:
      sentence, target, answer = answered[i]
      agreed[i] = (
        sentence,
        target,
        answer._replace(
          senses=tuple(senses[order].tolist()),
          scores=tuple(means[order].tolist()),
        ),
      )
  return agreed


def measure_rule(answered: Iterable[Answered]) -> tuple[int, int]:
  """Returns how often a word's occurrences in a document have one gold sense.

  Returns:
    The ambiguous words that occur several times in a document, and those of
    them that keep one sense there.
  """
  gold: dict[tuple, tuple[int, set[str]]] = {}
  for sentence, target, answer in answered:
    if len(answer.senses) > 1 and target.senses:
      word = sentence.document, target.lemma, target.pos
      count, senses = gold.get(word, (0, set(target.senses)))
      gold[word] = count + 1, senses & set(target.senses)
  several = [senses for count, senses in gold.values() if count > 1]
  return len(several), sum(map(bool, several))
