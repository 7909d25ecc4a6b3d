"""Coreference metrics: MUC, B3, CEAF-phi4, their mean, LEA, and mentions.

As conll/reference-coreference-scorers counts them (Pradhan et al. 2014,
"Scoring Coreference Partitions of Predicted Mentions"): mentions match if their
first and last words do, counts are summed over documents, and every chain of
the input counts, those of one mention included. LEA is Moosavi & Strube 2016
("Which Coreference Evaluation Metric Do You Trust?"), with a chain's number of
mentions as its importance.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.optimize

Chains = Sequence[Sequence[Hashable]]  # The mentions of each chain.


class Counts(NamedTuple):
  """A numerator and a denominator for recall, and for precision."""

  found: float
  gold: float
  correct: float
  predicted: float


def evaluate_chains(
  gold: Sequence[Chains], predicted: Sequence[Chains]
) -> dict[str, float]:
  """Returns conll_f1, and precision, recall and F1 of each metric.

  Args:
    gold, predicted: the chains of each document. A mention of two chains
      counts in the size of both.
  """
  values = {}
  for name, count in METRICS.items():
    pairs = zip(gold, predicted, strict=True)
    rows = [count(_as_sets(g), _as_sets(p)) for g, p in pairs]
    total = Counts(*np.sum([*rows, (0.0,) * 4], axis=0).tolist())
    recall = total.found / total.gold if total.gold else 0.0
    precision = total.correct / total.predicted if total.predicted else 0.0
    both = precision + recall
    values[f"{name}_precision"] = precision
    values[f"{name}_recall"] = recall
    values[f"{name}_f1"] = 2 * precision * recall / both if both else 0.0
  mean = sum(values[f"{name}_f1"] for name in CONLL) / len(CONLL)
  return {"conll_f1": mean, **values}


def format_scores(values: dict[str, float]) -> str:
  """Returns a table, tab-separated: metric, precision, recall, F1."""
  lines = ["metric\tprecision\trecall\tf1"]
  for name in METRICS:
    cells = (values[f"{name}_{x}"] for x in ("precision", "recall", "f1"))
    lines.append("\t".join([name, *(f"{x:.4f}" for x in cells)]))
  lines.append(f"conll\t\t\t{values['conll_f1']:.4f}")
  return "\n".join([*lines, ""])


def _as_sets(chains: Chains) -> list[frozenset]:
  return [frozenset(chain) for chain in chains]


def _both_ways(
  count: Callable[[Sequence[frozenset], Sequence[frozenset]], tuple],
) -> Callable[..., Counts]:
  """Returns a metric whose precision is its recall with the sides exchanged."""
  return lambda gold, predicted: Counts(
    *count(gold, predicted), *count(predicted, gold)
  )


def _shared(chains, others) -> list[Counter]:
  """Returns, for each chain, the number of mentions in each other chain."""
  owner = {mention: i for i, chain in enumerate(others) for mention in chain}
  return [Counter(owner[m] for m in chain if m in owner) for chain in chains]


def _mentions(chains, others) -> tuple[float, float]:
  mine, theirs = set().union(*chains), set().union(*others)
  return len(mine & theirs), len(mine)


def _muc(chains, others) -> tuple[float, float]:
  """Counts links: a chain in n parts, each unknown mention one, lacks n - 1."""
  pairs = zip(chains, _shared(chains, others), strict=True)
  return (
    sum(x.total() - len(x) for _, x in pairs),
    sum(len(chain) - 1 for chain in chains),
  )


def _b3(chains, others) -> tuple[float, float]:
  pairs = zip(chains, _shared(chains, others), strict=True)
  return (
    sum(n * n / len(chain) for chain, x in pairs for n in x.values()),
    sum(map(len, chains)),
  )


def _lea(chains, others) -> tuple[float, float]:
  """Counts links, weighted; a chain of one mention has a link to itself."""
  total = 0.0
  for chain, shared in zip(chains, _shared(chains, others), strict=True):
    if len(chain) == 1:
      total += any(len(others[i]) == 1 for i in shared)
    else:
      links = sum(n * (n - 1) for n in shared.values())
      total += links / (len(chain) - 1)
  return total, sum(map(len, chains))


def _ceafe(gold, predicted) -> Counts:
  """Aligns chains one to one; similarity is phi4, 2|g & p| / (|g| + |p|)."""
  cells = [
    (i, j, 2 * n / (len(gold[i]) + len(predicted[j])))
    for i, shared in enumerate(_shared(gold, predicted))
    for j, n in shared.items()
  ]
  # Chains that share no mention with any other are left out of the matrix.
  rows = {i: k for k, i in enumerate(sorted({i for i, _, _ in cells}))}
  columns = {j: k for k, j in enumerate(sorted({j for _, j, _ in cells}))}
  similarity = np.zeros((len(rows), len(columns)))
  for i, j, value in cells:
    similarity[rows[i], columns[j]] = value
  best = scipy.optimize.linear_sum_assignment(similarity, maximize=True)
  total = float(similarity[best].sum())
  return Counts(total, len(gold), total, len(predicted))


CONLL = ("muc", "b3", "ceafe")
METRICS: dict[str, Callable[..., Counts]] = {
  "muc": _both_ways(_muc),
  "b3": _both_ways(_b3),
  "ceafe": _ceafe,
  "lea": _both_ways(_lea),
  "mention": _both_ways(_mentions),
}
