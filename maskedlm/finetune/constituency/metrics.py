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
import itertools
from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.data.labelled.formats.trees import Bracket
from maskedlm.finetune.common.entity_metrics import (
  MatchCounts,
  count_matches,
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
  gold: Sequence[Parse], predicted: Sequence[Parse]
) -> dict[str, float]:
  """Returns bracket_f1, _precision, _recall, complete_match, tag_accuracy."""
  counted = _counted_brackets(gold, predicted)
  complete = [truth == guess for truth, guess in counted]
  return {
    **sum_counts(count_matches(counted)).scores("bracket_"),
    "complete_match": sum(complete) / max(len(complete), 1),
    "tag_accuracy": word_accuracy(
      [parse.tags for parse in gold], [parse.tags for parse in predicted]
    ),
  }


def count_brackets(
  gold: Sequence[Parse], predicted: Sequence[Parse]
) -> dict[str, MatchCounts]:
  """Returns the counts of each label, sorted by label."""
  return count_matches(_counted_brackets(gold, predicted))


def _counted_brackets(
  gold: Sequence[Parse], predicted: Sequence[Parse]
) -> list[tuple[collections.Counter, collections.Counter]]:
  """Returns the gold and the predicted brackets that count, by sentence.

  Their words are numbered among those that count.
  """
  pairs = []
  for truth, guess in zip(gold, predicted, strict=True):
    is_word = (tag not in PUNCTUATION for tag in truth.tags)
    before = [0, *itertools.accumulate(is_word)]  # Words that count.
    pairs.append((_renumbered(truth, before), _renumbered(guess, before)))
  return pairs


def _renumbered(parse: Parse, before: Sequence[int]) -> collections.Counter:
  """Returns the brackets that count; `before` are the words' new numbers."""
  return collections.Counter(
    Bracket(_SAME.get(label, label), before[begin], before[end])
    for label, begin, end in parse.brackets
    if before[begin] < before[end]
  )
