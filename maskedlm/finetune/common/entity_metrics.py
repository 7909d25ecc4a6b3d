"""Metrics of tags: entities, words, and tables of both.

Entities are scored as conlleval (CoNLL-2000, Sang and Buchholz) and seqeval's
default do: one counts if its type and both its borders are right, over all
sentences together, and what is ill-formed is read as bio.entities has it.
"strict" is seqeval's strict mode: what is ill-formed is no entity.
"""

import collections
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from maskedlm.finetune.common import bio

Tags = Sequence[Sequence[str]]  # Of the words of each sentence.
FindEntities = Callable[[Sequence[str]], Iterable[bio.Entity]]


class MatchCounts(NamedTuple):
  """Of entities, or of words of a tag."""

  right: int
  predicted: int
  gold: int

  @property
  def precision(self) -> float:
    """Share of the predicted that is right; 0 where none is predicted."""
    return self.right / self.predicted if self.predicted else 0.0

  @property
  def recall(self) -> float:
    """Share of the gold that is found; 0 where there is none."""
    return self.right / self.gold if self.gold else 0.0

  @property
  def f1(self) -> float:
    """The harmonic mean of both."""
    both = self.predicted + self.gold
    return 2 * self.right / both if both else 0.0


def count_entities(
  gold: Tags, predicted: Tags, read: FindEntities
) -> dict[str, MatchCounts]:
  """type -> Counts, sorted by type; `read` says which entities tags mean."""
  right, made, wanted = (collections.Counter() for _ in range(3))
  for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
    truth, found = set(read(gold_tags)), set(read(predicted_tags))
    wanted.update(entity.type for entity in truth)
    made.update(entity.type for entity in found)
    right.update(entity.type for entity in truth & found)
  kinds = sorted({*made, *wanted})
  return {k: MatchCounts(right[k], made[k], wanted[k]) for k in kinds}


def count_words(gold: Tags, predicted: Tags) -> dict[str, MatchCounts]:
  """tag -> Counts of words, sorted by tag."""
  pairs = collections.Counter(_pairs(gold, predicted))
  made, wanted = collections.Counter(), collections.Counter()
  for (truth, found), count in pairs.items():
    wanted[truth] += count
    made[found] += count
  tags = sorted({*made, *wanted})
  return {t: MatchCounts(pairs[t, t], made[t], wanted[t]) for t in tags}


def sum_counts(counts: dict[str, MatchCounts]) -> MatchCounts:
  """The sum over all types: micro average."""
  return MatchCounts(
    right=sum(c.right for c in counts.values()),
    predicted=sum(c.predicted for c in counts.values()),
    gold=sum(c.gold for c in counts.values()),
  )


def accuracy(gold: Tags, predicted: Tags) -> float:
  """Share of the words whose tag is right."""
  right = [truth == found for truth, found in _pairs(gold, predicted)]
  return sum(right) / len(right) if right else 0.0


def evaluate_entities(gold: Tags, predicted: Tags, scheme: str) -> dict[str, float]:
  """f1, precision, recall, the same strictly, and accuracy; fractions."""
  found = sum_counts(count_entities(gold, predicted, bio.find_entities))
  strict = sum_counts(count_entities(gold, predicted, _strictly(scheme)))
  return {
    "f1": found.f1,
    "precision": found.precision,
    "recall": found.recall,
    "strict_f1": strict.f1,
    "strict_precision": strict.precision,
    "strict_recall": strict.recall,
    "accuracy": accuracy(gold, predicted),
  }


def format_table(counts: dict[str, MatchCounts], name: str) -> str:
  """Precision, recall and F1 of each type, and of all together, as text."""
  rows = [*counts.items(), ("all", sum_counts(counts))]
  width = max(len(name), *(len(kind) for kind, _ in rows))
  lines = [
    f"{name:<{width}}  precision  recall      f1    gold  predicted   right"
  ]
  lines += [
    f"{kind:<{width}}  {c.precision:9.4f}  {c.recall:6.4f}  {c.f1:6.4f}"
    f"  {c.gold:6}  {c.predicted:9}  {c.right:6}"
    for kind, c in rows
  ]
  return "\n".join(lines) + "\n"


def confusion(gold: Tags, predicted: Tags) -> str:
  """Words by gold tag (rows) and predicted tag (columns), tabs between."""
  pairs = collections.Counter(_pairs(gold, predicted))
  tags = sorted({tag for pair in pairs for tag in pair})
  lines = ["\t".join(["gold\\predicted", *tags])]
  lines += [
    "\t".join([truth, *(str(pairs[truth, found]) for found in tags)])
    for truth in tags
  ]
  return "\n".join(lines) + "\n"


def _strictly(scheme: str) -> FindEntities:
  return lambda tags: bio.find_strict_entities(tags, scheme)


def _pairs(gold: Tags, predicted: Tags) -> Iterable[tuple[str, str]]:
  for truth, found in zip(gold, predicted, strict=True):
    yield from zip(truth, found, strict=True)
