"""SemEval-2010 task 8: its labels, and its official metric by hand."""

import pytest

from maskedlm.finetune.relations import semeval


def test_labels_have_both_directions():
  found = ["B-C(e2,e1)", "none", "A-D(e1,e2)", "kin", "B-C(e2,e1)"]
  expected = ["none", "A-D(e1,e2)", "A-D(e2,e1)", "B-C(e1,e2)"]
  expected += ["B-C(e2,e1)", "kin"]
  assert semeval.directed_labels(found, other="none") == expected
  assert semeval.directed_labels(["kin", "ab"], other="none") == ["ab", "kin"]


# --- The metric ---

CE, EC = "Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)"
MT, TM = "Message-Topic(e1,e2)", "Message-Topic(e2,e1)"
GOLD = [CE, CE, EC, EC, MT, MT, TM, "Other", "Other", "Other", "Other"]
FOUND = [CE, EC, EC, MT, MT, "Other", CE, "Other", CE, TM, MT]


def test_the_official_score_by_hand():
  """By definition: 3 of Cause-Effect are predicted, correctly or reversed.

  Cause-Effect: 2 correct, 1 reversed, 5 predicted (1 for Message-Topic, 1 for
  Other), 4 gold. Message-Topic: 1 correct, 0 reversed, 4 predicted, 3 gold.
  """
  assert semeval.count_relations(GOLD, FOUND, other="Other") == {
    "Cause-Effect": (2, 5, 4),
    "Message-Topic": (1, 4, 3),
  }
  _, *lines = semeval.format_report(GOLD, FOUND).splitlines()
  assert [line.split("\t")[:5] for line in lines] == [
    ["Cause-Effect", "2", "1", "5", "4"],
    ["Message-Topic", "1", "0", "4", "3"],
    ["Other", "1", "0", "2", "4"],
  ]
  p1, r1, p2, r2 = 2 / 5, 2 / 4, 1 / 4, 1 / 3
  f1, f2 = 2 * p1 * r1 / (p1 + r1), 2 * p2 * r2 / (p2 + r2)
  # Without directions 3 of Cause-Effect are correct.
  u1 = 2 * (3 / 5) * (3 / 4) / (3 / 5 + 3 / 4)
  p, r = 3 / 9, 3 / 7
  assert semeval.evaluate_relations(GOLD, FOUND) == pytest.approx(
    {
      "f1": (f1 + f2) / 2,
      "precision": (p1 + p2) / 2,
      "recall": (r1 + r2) / 2,
      "micro_f1": 2 * p * r / (p + r),
      "undirected_f1": (u1 + f2) / 2,
      "accuracy": 4 / 11,
    }
  )


def test_relations_that_gold_lacks_are_not_averaged():
  values = semeval.evaluate_relations([CE, "Other"], [CE, MT])
  assert values["f1"] == values["micro_f1"] == 1.0
  assert values["accuracy"] == 0.5
  # A relation that is never predicted is.
  assert semeval.evaluate_relations([CE, MT], [CE, "Other"])["f1"] == 0.5


def test_only_other_gives_zero():
  values = semeval.evaluate_relations(["Other"], ["Other"])
  assert values.pop("accuracy") == 1.0
  assert set(values.values()) == {0.0}


def test_another_name_for_other():
  values = semeval.evaluate_relations(["no", "kin"], ["no", "kin"], other="no")
  assert values["f1"] == 1.0
  assert semeval.evaluate_relations(["no", "kin"], ["kin", "kin"], other="no")[
    "f1"
  ] == (pytest.approx(2 / 3))
