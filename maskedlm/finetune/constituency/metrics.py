"""Labelled bracket scores as EVALB counts them (Sekine and Collins 1997).

With COLLINS.prm, its usual parameters (nlp.cs.nyu.edu/evalb):

  punctuation  words whose tag is , : `` '' or . are taken out, with brackets
               that hold nothing else; others shrink
  labels       PRT is ADVP; TOP, S1 and traces don't count, nor do other roots
               (trees.ROOTS)
  unaries      each bracket of a chain counts, so one predicted twice is right
               twice only if it is there twice
  scores       of all sentences together (micro)

EVALB looks up punctuation in the tags of either tree, and leaves out a sentence
if the numbers of words then differ. Here the gold tags decide for both trees,
so every sentence counts. Tags are scored for all words, punctuation included.
"""

import collections
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.data.labelled.formats.trees import Bracket
from maskedlm.finetune.common.entity_metrics import (
  MatchCounts,
  sum_counts,
  word_accuracy,
)

PUNCTUATION = (",", ":", "``", "''", ".")
_SAME = {"PRT": "ADVP"}


class Parse(NamedTuple):
  """The tags and brackets of a sentence."""

  tags: Sequence[str]
  brackets: Sequence[Bracket]


def evaluate(
  gold: Sequence[Parse],
  predicted: Sequence[Parse],
  punctuation: Collection[str] = PUNCTUATION,
) -> dict[str, float]:
  """Returns bracket_f1, _precision, _recall, complete_match, tag_accuracy."""
  counts = sum_counts(count_brackets(gold, predicted, punctuation))
  complete = [g == p for g, p in _bags(gold, predicted, punctuation)]
  return {
    "bracket_f1": counts.f1,
    "bracket_precision": counts.precision,
    "bracket_recall": counts.recall,
    "complete_match": sum(complete) / max(len(complete), 1),
    "tag_accuracy": word_accuracy(
      [parse.tags for parse in gold], [parse.tags for parse in predicted]
    ),
  }


def count_brackets(
  gold: Sequence[Parse],
  predicted: Sequence[Parse],
  punctuation: Collection[str] = PUNCTUATION,
) -> dict[str, MatchCounts]:
  """Returns the counts of each label, sorted by label."""
  correct, predictions, truths = (collections.Counter() for _ in range(3))
  for truth, found in _bags(gold, predicted, punctuation):
    for counter, bag in (
      (truths, truth),
      (predictions, found),
      (correct, truth & found),
    ):
      for bracket, count in bag.items():
        counter[bracket.label] += count
  labels = sorted({*predictions, *truths})
  return {x: MatchCounts(correct[x], predictions[x], truths[x]) for x in labels}


def _bags(
  gold: Sequence[Parse],
  predicted: Sequence[Parse],
  punctuation: Collection[str],
) -> Iterator[tuple[collections.Counter, collections.Counter]]:
  """Yields the brackets that count, with their numbers, of each sentence."""
  for truth, found in zip(gold, predicted, strict=True):
    is_word = [tag not in punctuation for tag in truth.tags]
    before = np.concatenate([[0], np.cumsum(is_word, dtype=int)]).tolist()
    yield _bag(truth.brackets, before), _bag(found.brackets, before)


def _bag(
  brackets: Sequence[Bracket], before: Sequence[int]
) -> collections.Counter:
  """Returns the brackets in terms of words that count.

  Args:
    brackets: those of a tree.
    before: the number of words that count before each word, and in all.
  """
  return collections.Counter(
    Bracket(_SAME.get(label, label), before[begin], before[end])
    for label, begin, end in brackets
    if before[begin] < before[end]
  )
