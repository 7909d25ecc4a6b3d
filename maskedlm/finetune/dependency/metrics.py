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

import numpy as np

from maskedlm.finetune.common.entity_metrics import MatchCounts, count_matches


class Tree(NamedTuple):
  """The heads (0 for the root) and the labels of a sentence, as an Example."""

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
  right = []  # [words, 3] of each sentence: head, label, label with subtype.
  for truth, guess in zip(gold, predicted, strict=True):
    words = zip(
      truth.heads, guess.heads, truth.labels, guess.labels, strict=True
    )
    matches = [
      (a == b, universal(x) == universal(y), x == y) for a, b, x, y in words
    ]
    right.append(np.array(matches, bool).reshape(-1, 3))
  heads, labels, exact = np.concatenate(right).T
  return {
    "las": float(np.mean(heads & labels)),
    "uas": float(np.mean(heads)),
    "las_subtypes": float(np.mean(heads & exact)),
    "label_accuracy": float(np.mean(labels)),
    "complete_match": float(np.mean([x[:, :2].all() for x in right])),
  }


def count_arcs(
  gold: Sequence[Tree], predicted: Sequence[Tree]
) -> dict[str, MatchCounts]:
  """Returns the counts of each label without subtypes, sorted by label.

  An arc is right if its head and its label are, so all of them give las.
  """

  def arcs(tree: Tree) -> list[tuple[str, int, int]]:
    words = enumerate(zip(tree.heads, tree.labels, strict=True))
    return [(universal(label), i, head) for i, (head, label) in words]

  pairs = zip(gold, predicted, strict=True)
  return count_matches((arcs(a), arcs(b)) for a, b in pairs)


def universal(label: str) -> str:
  """Returns a label without its subtype: nmod of nmod:poss."""
  return label.split(":")[0]
