"""Attachment scores worked by hand.

conll18_ud_eval.py, the official script, prints the same for these trees (UAS
62.50, LAS 50.00); the tutorial says how to run it.
"""

import pytest

from maskedlm.finetune.dependency import metrics
from maskedlm.finetune.dependency.metrics import Tree

GOLD = [
  Tree((2, 3, 0, 3, 3), ("det", "nsubj:pass", "root", "obl", "punct")),
  Tree((2, 0, 2), ("nmod:poss", "root", "punct")),
]
FOUND = [
  # Two heads are wrong, one of them with the right label.
  Tree((2, 3, 0, 2, 4), ("det", "nsubj", "root", "obl", "dep")),
  # One head is wrong; the label of another is.
  Tree((2, 0, 1), ("amod", "root", "punct")),
]


def test_by_hand():
  scores = metrics.evaluate(GOLD, FOUND)
  assert scores["uas"] == 5 / 8
  assert scores["las"] == 4 / 8  # det, nsubj, root; root.
  assert scores["las_subtypes"] == 3 / 8
  assert scores["label_accuracy"] == 6 / 8
  assert scores["complete_match"] == 0
  assert metrics.evaluate(GOLD, GOLD) == pytest.approx(
    dict.fromkeys(scores, 1.0)
  )
  subtypes = [Tree(x.heads, [*map(metrics.universal, x.labels)]) for x in GOLD]
  assert metrics.evaluate(GOLD, subtypes)["complete_match"] == 1
  assert metrics.evaluate(GOLD, subtypes)["las_subtypes"] == 6 / 8


def test_counts_by_hand():
  counts = metrics.count_arcs(GOLD, FOUND)
  assert [*counts] == sorted(counts)
  assert counts["nsubj"] == (1, 1, 1)
  assert counts["punct"] == (0, 1, 2)
  assert counts["root"] == (2, 2, 2)
  assert counts["nmod"] == (0, 0, 1) and counts["amod"] == (0, 1, 0)
  assert sum(x.correct for x in counts.values()) == 4
