"""SemEval-2010 task 8: its labels, its official metric and its output format.

Hendrickx et al. 2010 (https://aclanthology.org/S10-1006): how are two nominals
of a sentence related? By one of nine relations, in either direction, or Other.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.data.labelled.formats.relations import RELATION
from maskedlm.finetune.common import entity_metrics


def strip_direction(relation: str) -> str:
  """Returns the relation without its (e1,e2) or (e2,e1)."""
  match = RELATION.fullmatch(relation)
  return match.group(1) if match else relation


def directed_labels(relations: Sequence[str], *, other: str) -> list[str]:
  """Returns the labels for these relations: `other` first, the rest sorted.

  A relation that occurs in one direction gets labels for both: the task's
  training set has a single Entity-Destination(e2,e1).
  """
  labels = set(relations)
  for relation in relations:
    name = strip_direction(relation)
    if name != relation:
      labels |= {f"{name}(e1,e2)", f"{name}(e2,e1)"}
  return [other] * (other in labels) + sorted(labels - {other})


class RelationCounts(NamedTuple):
  """Numbers of examples of a relation, both directions together."""

  correct: int  # Both relation and direction are correct.
  reversed: int  # The relation is correct, but not its direction.
  predicted: int  # In either direction.
  gold: int

  @property
  def scores(self) -> tuple[float, float, float]:
    """(precision, recall, F1); a wrong direction counts against both."""
    found = entity_metrics.MatchCounts(self.correct, self.predicted, self.gold)
    return found.precision, found.recall, found.f1


def count_relations(
  gold: Sequence[str], predicted: Sequence[str], *, other: str = ""
) -> dict[str, RelationCounts]:
  """Returns the counts of each relation in gold except `other`, sorted."""
  pairs = [
    (strip_direction(g), strip_direction(p), g == p)
    for g, p in zip(gold, predicted, strict=True)
  ]
  actual = Counter(g for g, _, _ in pairs)
  proposed = Counter(p for _, p, _ in pairs)
  right = Counter(g for g, _, same in pairs if same)
  backwards = Counter(g for g, p, same in pairs if g == p and not same)
  return {
    name: RelationCounts(
      right[name], backwards[name], proposed[name], actual[name]
    )
    for name in sorted(set(actual) - {other})
  }


def evaluate_relations(
  gold: Sequence[str], predicted: Sequence[str], *, other: str = "Other"
) -> dict[str, float]:
  """Returns the official scores, as fractions.

  f1 is the mean of the relations' F1, other excluded, where a correct relation
  in the wrong direction counts as wrong ("(9+1)-way evaluation taking
  directionality into account" of semeval2010_task8_scorer-v1.2.pl). precision
  and recall are means as well; micro_f1 counts all relations together;
  undirected_f1 is f1 without directions; accuracy is over all labels.
  """
  counts = list(count_relations(gold, predicted, other=other).values())
  each = [c.scores for c in counts]
  precision, recall, f1 = (_mean([x[i] for x in each]) for i in range(3))
  together = entity_metrics.MatchCounts(
    correct=sum(c.correct for c in counts),
    predicted=sum(c.predicted for c in counts),
    gold=sum(c.gold for c in counts),
  )
  undirected = [
    entity_metrics.MatchCounts(c.correct + c.reversed, c.predicted, c.gold).f1
    for c in counts
  ]
  return {
    "f1": f1,
    "precision": precision,
    "recall": recall,
    "micro_f1": together.f1,
    "undirected_f1": _mean(undirected),
    "accuracy": _mean([g == p for g, p in zip(gold, predicted, strict=True)]),
  }


def format_report(gold: Sequence[str], predicted: Sequence[str]) -> str:
  """Returns tab-separated counts and scores of each relation, and of Other."""
  lines = [
    "relation\tright\twrong direction\tpredicted\tgold\tprecision\trecall\tf1"
  ]
  for name, counts in count_relations(gold, predicted).items():
    figures = "\t".join(f"{x:.4f}" for x in counts.scores)
    lines.append("\t".join([name, *map(str, counts), figures]))
  return "\n".join([*lines, ""])


def format_answers(ids: Sequence[str], relations: Sequence[str]) -> str:
  """Returns the scorer's input: a line `id<TAB>relation` for each sentence."""
  return "".join(f"{i}\t{r}\n" for i, r in zip(ids, relations, strict=True))


def _mean(values: Sequence[float]) -> float:
  return sum(values) / len(values) if values else 0.0
