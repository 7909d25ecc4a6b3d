"""Scores of roles, worked out by hand, by the rules of srl-eval.pl.

The script gave the same counts on the development set of English-EWT
(docs/results/finetuning.md).
"""

import pytest

from maskedlm.data.labelled.bio import Entity
from maskedlm.data.labelled.formats.predicates import Predicate
from maskedlm.finetune.common.entity_metrics import MatchCounts
from maskedlm.finetune.semantic_roles import metrics
from maskedlm.finetune.semantic_roles.metrics import Argument


def predicate(index, *args):
  return Predicate(index, tuple(Entity(*x) for x in args))


# "The news , he said , is that ...": one argument in two parts.
SPLIT = predicate(4, ("A1", 0, 3), ("A0", 3, 4), ("C-A1", 5, 9))


def counts(gold, predicted, **options):
  found = metrics.count_arguments([gold], [predicted], **options)
  return {label: tuple(x) for label, x in found.items()}


@pytest.mark.parametrize(
  ("args", "expected"),
  [
    (SPLIT.args, [("A1", ((0, 3), (5, 9))), ("A0", ((3, 4),))]),
    # A part continues the last argument of its label.
    (
      [("A1", 0, 1), ("A1", 2, 3), ("C-A1", 5, 6), ("C-A1", 7, 8)],
      [("A1", ((0, 1),)), ("A1", ((2, 3), (5, 6), (7, 8)))],
    ),
    # One without an argument before it is an argument.
    ([("C-A1", 0, 1), ("A1", 2, 4)], [("A1", ((0, 1),)), ("A1", ((2, 4),))]),
  ],
)
def test_parts_are_one_argument(args, expected):
  found = metrics.join_parts(predicate(4, *args))
  assert [x for x in found if x.label != "V"] == expected
  assert Argument("V", ((4, 5),)) in found


@pytest.mark.parametrize(
  ("args", "right", "found"),
  [
    ([("A1", 0, 3), ("A0", 3, 4), ("C-A1", 5, 9)], 1, 1),
    # Half of it is not right, nor are two arguments instead of one.
    ([("A1", 0, 3), ("A0", 3, 4)], 0, 1),
    ([("A1", 0, 3), ("A0", 3, 4), ("A1", 5, 9)], 0, 2),
    ([("A1", 0, 3), ("A0", 3, 4), ("C-A1", 5, 8)], 0, 1),
    # The first part is missing, so C-A1 is an A1 with the wrong words.
    ([("A0", 3, 4), ("C-A1", 5, 9)], 0, 1),
  ],
)
def test_discontinuous(args, right, found):
  made = counts([SPLIT], [predicate(4, *args)])
  assert made["A1"] == (right, found, 1)
  assert made["A0"] == (1, 1, 1)
  assert "C-A1" not in made


def test_references_are_labels_of_their_own():
  gold = predicate(3, ("A0", 0, 2), ("R-A0", 2, 3))
  guess = predicate(3, ("A0", 0, 2), ("A0", 2, 3))
  assert counts([gold], [guess]) == {
    "A0": (1, 2, 1),
    "R-A0": (0, 0, 1),
    "V": (1, 1, 1),
  }


def test_v_is_counted_apart():
  gold = predicate(1, ("V", 1, 3), ("A1", 3, 5))
  guess = predicate(1, ("A1", 3, 5))
  found = metrics.count_arguments([[gold]], [[guess]])
  assert found["V"] == MatchCounts(0, 1, 1)
  assert metrics.overall(found) == MatchCounts(1, 1, 1)
  particle = predicate(1, ("A1", 2, 3), ("C-V", 3, 4))  # V and C-V are one.
  found = metrics.count_arguments([[particle]], [[particle]])
  assert found == {"A1": MatchCounts(1, 1, 1), "V": MatchCounts(1, 1, 1)}


def test_predicates_that_one_side_lacks():
  gold = [predicate(1, ("A0", 0, 1)), predicate(5, ("A1", 6, 8))]
  guess = [predicate(1, ("A0", 0, 1)), predicate(3, ("A2", 4, 5))]
  official = counts(gold, guess)
  assert official == {"A0": (1, 1, 1), "A1": (0, 0, 1), "V": (1, 1, 2)}
  assert counts(gold, guess, skip_others=False) == {
    **official,
    "A2": (0, 1, 0),
    "V": (1, 2, 2),
  }


def test_evaluate():
  gold = [[SPLIT, predicate(7, ("A1", 8, 9))], [predicate(0)]]
  given = [[SPLIT, predicate(7, ("A2", 8, 9))], [predicate(0, ("A1", 1, 2))]]
  found = [[SPLIT, predicate(2, ("A1", 3, 5))], [predicate(0, ("A1", 1, 2))]]
  made = metrics.evaluate_roles(gold, given, found)
  # 2 of 4 predicted and of 3 gold arguments; predicates: 2 of 3 and of 3.
  assert made == pytest.approx(
    {
      "srl_f1": 4 / 7,
      "precision": 2 / 4,
      "recall": 2 / 3,
      "predicate_f1": 2 / 3,
      "predicate_precision": 2 / 3,
      "predicate_recall": 2 / 3,
      "end_to_end_f1": 4 / 7,
    }
  )
  report = metrics.format_report(gold, given, found)
  lines = [line.split() for line in report.splitlines()]
  assert ["A1", "1.0000", "0.5000", "0.6667", "2", "1", "1"] not in lines
  assert ["A1", "0.5000", "0.5000", "0.5000", "2", "2", "1"] in lines
  assert ["all", "0.5000", "0.6667", "0.5714", "3", "4", "2"] in lines


def test_nothing_at_all():
  made = metrics.evaluate_roles([[]], [[]], [[]])
  assert set(made.values()) == {0.0}
