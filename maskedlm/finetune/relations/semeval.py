"""SemEval-2010 task 8: its labels, its official metric and its output format.

Hendrickx et al. 2010 (https://aclanthology.org/S10-1006): how are two nominals
of a sentence related? By one of nine relations, in either direction, or Other.
"""

from collections.abc import Sequence

from maskedlm.data.labelled.formats.relations import RELATION
from maskedlm.finetune.common import entity_metrics
from maskedlm.finetune.common.entity_metrics import MatchCounts


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


def count_relations(
  gold: Sequence[str],
  predicted: Sequence[str],
  *,
  other: str = "",
  directed: bool = True,
) -> dict[str, MatchCounts]:
  """Returns the counts of each relation in gold except `other`, sorted.

  Both directions count together; if `directed`, the wrong one isn't correct.
  """

  def items(relation: str) -> list[tuple[str, str]]:
    return [(strip_direction(relation), relation if directed else "")]

  pairs = zip(map(items, gold), map(items, predicted), strict=True)
  counts = entity_metrics.count_matches(pairs)
  return {n: c for n, c in counts.items() if c.gold and n != other}


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
  counts = count_relations(gold, predicted, other=other)
  undirected = count_relations(gold, predicted, other=other, directed=False)
  scores = [c.scores() for c in counts.values()]
  return {
    **{n: _mean([x[n] for x in scores]) for n in ("f1", "precision", "recall")},
    "micro_f1": entity_metrics.sum_counts(counts).f1,
    "undirected_f1": _mean([c.f1 for c in undirected.values()]),
    "accuracy": _mean([g == p for g, p in zip(gold, predicted, strict=True)]),
  }


def format_report(gold: Sequence[str], predicted: Sequence[str]) -> str:
  """Returns tab-separated counts and scores of each relation, and of Other."""
  lines = [
    "relation\tright\twrong direction\tpredicted\tgold\tprecision\trecall\tf1"
  ]
  undirected = count_relations(gold, predicted, directed=False)
  for name, c in count_relations(gold, predicted).items():
    wrong = undirected[name].correct - c.correct
    counts = map(str, (c.correct, wrong, c.predicted, c.gold))
    figures = (f"{x:.4f}" for x in (c.precision, c.recall, c.f1))
    lines.append("\t".join([name, *counts, *figures]))
  return "\n".join([*lines, ""])


def format_answers(ids: Sequence[str], relations: Sequence[str]) -> str:
  """Returns the scorer's input: a line `id<TAB>relation` for each sentence."""
  return "".join(f"{i}\t{r}\n" for i, r in zip(ids, relations, strict=True))


def _mean(values: Sequence[float]) -> float:
  return sum(values) / len(values) if values else 0.0
