"""Attachment scores, as the CoNLL-2018 shared task counts them.

Zeman et al. 2018, aclanthology.org/K18-2001, conll18_ud_eval.py:

  uas   share of words with the right head
  las   share of words with the right head and label, without its subtype:
        nmod:poss is nmod

All words of all sentences count, punctuation too. (The script's precision,
recall and F1 are equal where the words are the gold ones, as they are here.)
"""

from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.finetune.common.entity_metrics import MatchCounts, count_matches


class Tree(NamedTuple):
  """The heads (0 for the root) and the labels of the words of a sentence."""

  heads: Sequence[int]
  labels: Sequence[str]


def evaluate(
  gold: Sequence[Tree], predicted: Sequence[Tree]
) -> dict[str, float]:
  """Returns las, uas, las_subtypes, label_accuracy and complete_match.

  las_subtypes tells subtypes apart, label_accuracy ignores heads and subtypes,
  and complete_match is the share of sentences in which all that las counts is
  right.
  """
  heads, both, whole, labels, complete = [], [], [], [], []
  for truth, found in zip(gold, predicted, strict=True):
    right = [a == b for a, b in zip(truth.heads, found.heads, strict=True)]
    same, exact = (
      [
        shown(a) == shown(b)
        for a, b in zip(truth.labels, found.labels, strict=True)
      ]
      for shown in (universal, str)
    )
    arcs = [a and b for a, b in zip(right, same, strict=True)]
    heads += right
    labels += same
    both += arcs
    whole += [a and b for a, b in zip(right, exact, strict=True)]
    complete.append(all(arcs))
  return {
    "las": _share(both),
    "uas": _share(heads),
    "las_subtypes": _share(whole),
    "label_accuracy": _share(labels),
    "complete_match": _share(complete),
  }


def count_arcs(
  gold: Sequence[Tree], predicted: Sequence[Tree]
) -> dict[str, MatchCounts]:
  """Returns the counts of each label without subtypes, sorted by label.

  An arc is right if its head and its label are, so all of them give las.
  """

  def arcs(tree: Tree) -> list[tuple[str, int, int]]:
    words = enumerate(zip(*tree, strict=True))
    return [(universal(label), i, head) for i, (head, label) in words]

  pairs = zip(gold, predicted, strict=True)
  return count_matches((arcs(a), arcs(b)) for a, b in pairs)


def universal(label: str) -> str:
  """Returns a label without its subtype: nmod of nmod:poss."""
  return label.split(":")[0]


def _share(right: Sequence[bool]) -> float:
  return sum(right) / max(len(right), 1)
