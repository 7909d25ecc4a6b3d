"""Metrics of spans by hand."""

import pytest

from maskedlm.data.labelled.bio import Entity
from maskedlm.finetune.spans import metrics

GOLD = [
  (Entity("A", 0, 5), Entity("B", 1, 3), Entity("A", 4, 5)),
  (Entity("A", 0, 1), Entity("C", 0, 1)),
]


MADE = [
  [Entity("A", 0, 5), Entity("A", 1, 3), Entity("A", 4, 5)],
  [Entity("A", 0, 1)],
]


def test_scores_by_hand():
  scores = metrics.evaluate_spans(GOLD, MADE)
  assert scores == {
    "f1": pytest.approx(6 / 9),
    "precision": 3 / 4,
    "recall": 3 / 5,
  }
  # Within others: gold has B and A, found are A and A; labels count.
  inner = metrics.evaluate_inner_spans(GOLD, MADE)
  assert inner["inner_f1"] == inner["inner_recall"] == 1 / 2
  assert (
    metrics.inner_spans(GOLD[1]) == []
  )  # Spans of the same words are not nested.
  text = metrics.format_report(GOLD, MADE)
  lines = [line.split() for line in text.splitlines()]
  assert ["B", "0.0000", "0.0000", "0.0000", "1", "0", "0"] in lines
  assert ["3-4"] not in [line[:1] for line in lines]
  assert ["2", "0.0000", "0.0000", "0.0000", "1", "1", "0"] in lines
  assert ["5-8", "1.0000", "1.0000", "1.0000", "1", "1", "1"] in lines


def test_counts_by_width():
  spans = [[Entity("A", 0, width) for width in (1, 2, 3, 4, 5, 8, 9, 30)]]
  lines = metrics.format_report(spans, spans).splitlines()
  cells = [line.split() for line in lines if line]
  gold = {cell[0]: cell[4] for cell in cells if cell[0][0].isdigit()}
  assert gold == {"1": "1", "2": "1", "3-4": "2", "5-8": "2", "9-": "2"}


def test_reach_by_hand():
  sizes = [[1, 1, 4, 4, 1], [1]]
  labels = ["NULL", *sorted({s.type for spans in GOLD for s in spans})]

  def reach_of(gold, sizes, *, labels=labels, **limits):
    return metrics.evaluate_reach(gold, sizes, labels=labels, **limits)

  reach = reach_of(GOLD, sizes, max_words=5, capacity=20)
  assert reach == {
    "reachable": 0.8,
    "unknown_label": 0.0,
    "too_wide": 0.0,
    "second_label": 0.2,
  }
  # The first of two labels is unknown: the second takes its place.
  both = [(Entity("X", 0, 1), Entity("A", 0, 1))]
  assert reach_of(both, [[1]], max_words=5, capacity=20) == {
    "reachable": 0.5,
    "unknown_label": 0.5,
    "too_wide": 0.0,
    "second_label": 0.0,
  }
  reach = reach_of(GOLD, sizes, max_words=2, capacity=4)
  # The whole sentence has too many words; words 1 to 3 too many tokens.
  assert reach["too_wide"] == 0.4 and reach["reachable"] == pytest.approx(0.4)
  for capacity, share in ((5, 0), (4, 1)):  # Of 2 + 3 tokens.
    reach = reach_of(
      [[Entity("A", 0, 2)]], [[2, 3]], max_words=2, capacity=capacity
    )
    assert reach["too_wide"] == share
  assert reach_of([()], [[]], max_words=1, capacity=1) == {
    "reachable": 1.0,
    "unknown_label": 0.0,
    "too_wide": 0.0,
    "second_label": 0.0,
  }
