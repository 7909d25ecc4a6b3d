"""Decoding of spans by hand and by definition, and its threshold."""

import itertools
import random

import pytest

from maskedlm.data.labelled.bio import Entity
from maskedlm.finetune.spans import decode, metrics
from maskedlm.finetune.spans.decode import Candidate


def candidates(*given):
  return [Candidate(m, Entity(t, b, e), 0.5) for m, t, b, e in given]


def names(chosen):
  return [(c.span.type, c.span.begin, c.span.end) for c in chosen]


FOUND = candidates(
  (1.0, "A", 0, 3),  # Crosses the next one, and is worse.
  (2.0, "B", 2, 5),
  (1.5, "C", 3, 4),  # Within it.
  (-1.0, "A", 5, 7),
  (0.5, "B", 1, 6),  # Around it.
  (0.4, "A", 2, 5),  # The same words.
)


def test_flat_decoding_by_hand():
  chosen = decode.without_overlaps(FOUND)
  assert names(chosen) == [("B", 2, 5), ("A", 5, 7)]
  assert names(decode.select_above(chosen, 0.0)) == [("B", 2, 5)]
  assert names(decode.select_above(chosen, -1.0)) == [("B", 2, 5)]  # Over it.
  assert names(decode.select_above(chosen, -2.0)) == [("B", 2, 5), ("A", 5, 7)]


def test_nested_decoding_by_hand():
  chosen = decode.without_crossings(FOUND)
  assert names(chosen) == [("B", 2, 5), ("C", 3, 4), ("B", 1, 6)]
  # (5, 7) crosses (1, 6), which is better; above() has outer ones first.
  assert names(decode.select_above(chosen, 0.0)) == [
    ("B", 1, 6),
    ("B", 2, 5),
    ("C", 3, 4),
  ]
  # Spans with a common end are nested.
  same = candidates((3, "A", 0, 2), (2, "B", 0, 4), (1, "C", 2, 4))
  found = decode.without_crossings(same)
  assert names(found) == [("A", 0, 2), ("B", 0, 4), ("C", 2, 4)]
  assert names(decode.select_above(found, 0.0)) == [
    ("B", 0, 4),
    ("A", 0, 2),
    ("C", 2, 4),
  ]


def test_equal_margins_are_decided_by_place():
  given = candidates((1, "B", 1, 2), (1, "A", 0, 2), (1, "A", 1, 3))
  for order in itertools.permutations(given):
    assert names(decode.without_overlaps(order)) == [("A", 0, 2)]


@pytest.mark.parametrize("seed", range(10))
def test_nested_decoding_against_its_definition(seed):
  rng = random.Random(seed)
  given = []
  for _ in range(40):
    begin = rng.randrange(12)
    given.append((rng.random(), "A", begin, begin + rng.randrange(1, 6)))
  chosen = []
  for m, t, b, e in sorted(given, reverse=True):
    if not any(
      b < c < e < d or c < b < d < e or (b, e) == (c, d)
      for _, _, c, d in chosen
    ):
      chosen.append((m, t, b, e))
  found = decode.without_crossings(candidates(*given))
  assert [(c.margin, *c.span) for c in found] == chosen


def test_threshold_by_hand():
  gold = [[Entity("A", 0, 1), Entity("B", 2, 3)], [Entity("A", 4, 5)]]
  chosen = [
    candidates((3.0, "A", 0, 1), (-2.0, "B", 2, 3), (-3.0, "B", 5, 6)),
    candidates((1.0, "B", 4, 5), (-1.0, "A", 7, 8)),
  ]
  # Right, wrong, wrong, right, wrong: F1 is 2/4, 2/5, 2/6, 4/7, 4/8.
  threshold, f1 = decode.calibrate_threshold(chosen, gold)
  assert threshold == -2.5 and f1 == pytest.approx(4 / 7)
  kept = [[c.span for c in decode.select_above(cs, threshold)] for cs in chosen]
  assert metrics.evaluate_spans(gold, kept)["f1"] == pytest.approx(f1)


def test_threshold_at_the_borders():
  gold = [[Entity("A", 0, 1)]]
  assert decode.calibrate_threshold([[]], gold) == (0.0, 0.0)
  wrong = [candidates((5.0, "B", 0, 1))]
  assert decode.calibrate_threshold(wrong, gold) == (0.0, 0.0)
  # All of them: just below the lowest.
  assert decode.calibrate_threshold([candidates((-4.0, "A", 0, 1))], gold) == (
    -4.5,
    1.0,
  )
  # Equal margins go together.
  equal = candidates((2.0, "A", 0, 1), (2.0, "A", 3, 4), (1.0, "A", 5, 6))
  assert decode.calibrate_threshold([equal], gold) == (
    1.5,
    pytest.approx(2 / 3),
  )
  # Equally good: the one nearer to the argmax.
  gold = [[Entity("A", 0, 1), Entity("A", 2, 3)]]
  given = candidates(
    (9.0, "A", 0, 1), (8.0, "A", 4, 5), (7.0, "A", 6, 7), (0.5, "A", 2, 3)
  )
  # F1: 2/3, 2/4, 2/5, 4/6.
  assert decode.calibrate_threshold([given], gold) == (-0.25 + 0.25, 2 / 3)


@pytest.mark.parametrize("seed", range(5))
def test_threshold_against_trying_all(seed):
  rng = random.Random(seed)
  chosen, gold = [], []
  for _ in range(7):
    found = [(rng.gauss(0, 2), rng.choice("AB"), i, i + 1) for i in range(9)]
    chosen.append(decode.without_overlaps(candidates(*found)))
    gold.append([Entity(rng.choice("AB"), i, i + 1) for i in range(0, 9, 2)])
  threshold, f1 = decode.calibrate_threshold(chosen, gold)

  def f1_at(value):
    kept = [[c.span for c in decode.select_above(cs, value)] for cs in chosen]
    return metrics.evaluate_spans(gold, kept)["f1"]

  assert f1_at(threshold) == pytest.approx(f1)
  tried = [c.margin + d for cs in chosen for c in cs for d in (-1e-9, 1e-9)]
  assert f1 == pytest.approx(max(map(f1_at, tried)))
