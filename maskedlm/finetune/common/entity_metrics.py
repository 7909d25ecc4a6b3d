"""Metrics of tags: precision, recall and F1 of entities and of words.

Entities are scored as by conlleval (CoNLL-2000, Sang and Buchholz) and by
seqeval's default mode: an entity is correct if its type and both ends are,
counts are over all sentences, and bio.find_entities reads ill-formed tags.
"strict" is seqeval's strict mode, in which ill-formed tags are no entity.
"""

import collections
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from maskedlm.data.labelled import bio
from maskedlm.runtime import console

Tags = Sequence[Sequence[str]]  # One per word, for each sentence.


class MatchCounts(NamedTuple):
  """Numbers of correct, predicted and gold entities (or words, or answers)."""

  correct: int
  predicted: int
  gold: int

  @property
  def precision(self) -> float:
    """The share of predictions that are correct; 0 if there are none."""
    return self.correct / self.predicted if self.predicted else 0.0

  @property
  def recall(self) -> float:
    """The share of gold entities that are found; 0 if there are none."""
    return self.correct / self.gold if self.gold else 0.0

  @property
  def f1(self) -> float:
    """The harmonic mean of precision and recall; 0 if both are 0."""
    total = self.predicted + self.gold
    return 2 * self.correct / total if total else 0.0

  def scores(self, prefix: str = "") -> dict[str, float]:
    """Returns f1, precision and recall, whose names begin with `prefix`."""
    return {
      f"{prefix}{name}": getattr(self, name)
      for name in ("f1", "precision", "recall")
    }


def count_matches(
  pairs: Iterable[tuple[Collection[tuple], Collection[tuple]]],
) -> dict[str, MatchCounts]:
  """Returns the counts of each label, sorted by label.

  Args:
    pairs: the gold and the predicted items of each sentence. The first field of
      an item is its label. Equal ones match, each as often as it is in both.
  """
  truths, predictions, correct = (collections.Counter[Any]() for _ in range(3))
  for pair in pairs:
    gold, predicted = map(collections.Counter, pair)
    for total, items in (
      (truths, gold),
      (predictions, predicted),
      (correct, gold & predicted),
    ):
      for item, count in items.items():
        total[item[0]] += count
  labels = sorted({*predictions, *truths})
  return {x: MatchCounts(correct[x], predictions[x], truths[x]) for x in labels}


def count_entities(
  gold: Iterable[Sequence],
  predicted: Iterable[Sequence],
  find_entities: Callable[[Sequence], Iterable[tuple]] = lambda items: items,
) -> dict[str, MatchCounts]:
  """Returns the counts of each type of entity, sorted by type.

  Args:
    gold, predicted: the tags of each sentence, or its entities.
    find_entities: tags of a sentence -> its entities, each counted once.
  """
  return count_matches(
    (set(find_entities(a)), set(find_entities(b)))
    for a, b in zip(gold, predicted, strict=True)
  )


def count_words(gold: Tags, predicted: Tags) -> dict[str, MatchCounts]:
  """Returns the counts of words with each tag, sorted by tag."""

  def words(tags: Sequence[str]) -> list[tuple[str, int]]:
    return [(tag, i) for i, tag in enumerate(tags)]

  return count_entities(gold, predicted, words)


def sum_counts(counts: dict[str, MatchCounts]) -> MatchCounts:
  """Returns the sum over all types, for micro averages."""
  return MatchCounts(*(sum(c[i] for c in counts.values()) for i in range(3)))


def word_accuracy(gold: Tags, predicted: Tags) -> float:
  """Returns the share of words with the correct tag; 0 without words."""
  pairs = zip(chain(*gold), chain(*predicted), strict=True)
  correct = [truth == tag for truth, tag in pairs]
  return sum(correct) / len(correct) if correct else 0.0


def evaluate_entities(
  gold: Tags, predicted: Tags, scheme: str
) -> dict[str, float]:
  """Returns f1, precision and recall, their strict_ variants, and accuracy."""

  def find_strict(tags: Sequence[str]):
    return bio.find_strict_entities(tags, scheme)

  lenient = sum_counts(count_entities(gold, predicted, bio.find_entities))
  strict = sum_counts(count_entities(gold, predicted, find_strict))
  return {
    **lenient.scores(),
    **strict.scores("strict_"),
    "accuracy": word_accuracy(gold, predicted),
  }


def format_table(counts: dict[str, MatchCounts], name: str) -> str:
  """Returns a text table of precision, recall and F1 by type and overall."""
  lines = console.table(
    (name, "precision", "recall", "f1", "gold", "predicted", "right"),
    (
      (
        row_name,
        *(f"{value:.4f}" for value in (c.precision, c.recall, c.f1)),
        *(c.gold, c.predicted, c.correct),
      )
      for row_name, c in [*counts.items(), ("all", sum_counts(counts))]
    ),
  )
  return "\n".join(lines) + "\n"
