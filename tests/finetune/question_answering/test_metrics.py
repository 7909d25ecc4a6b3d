"""Answers scored as by evaluate-v1.1.py and evaluate-v2.0.py, by hand."""

import random

import numpy as np
import pytest

from maskedlm.finetune.question_answering import metrics
from maskedlm.finetune.question_answering.metrics import score_v1, score_v2


@pytest.mark.parametrize(
  ("text", "expected"),
  [
    ("The  Cat,\tsat!", "cat sat"),
    ("a an the", ""),
    ("The", ""),
    ("theatre than Anna", "theatre than anna"),  # Whole words alone.
    # Punctuation goes first: it joins, and makes no articles.
    ("the-end", "theend"),
    ("a.", ""),
    ("it's 3.5%", "its 35"),
    ("[$5_000]", "5000"),
    # ASCII only; an article may be next to a character that is no letter.
    ("“the” —£5", "“ ” —£5"),
    ("an’s", "’s"),
    ("中文。 the。", "中文。 。"),
    # Unicode whitespace: no-break and ideographic spaces.
    ("New\u00a0York\u3000City\n", "new york city"),
    # Unicode case; composition is kept, so two forms of é differ.
    ("ÉCOLE İ", "école i̇"),
    ("CAFE\u0301", "cafe\u0301"),
    ("caf\u00e9", "caf\u00e9"),
    ("", ""),
  ],
)
def test_normalise(text, expected):
  assert metrics.normalise_answer(text) == expected


@pytest.mark.parametrize(
  ("predicted", "gold", "v1", "v2"),
  [
    # Nothing is left: no common word, so F1 is 0 in 1.1; in 2.0 both
    # are empty, which agrees.
    ("The", ["the"], (1, 0), (1, 1)),
    ("", ["The"], (1, 0), (1, 1)),
    ("...", ["a"], (1, 0), (1, 1)),
    ("cat", ["The"], (0, 0), (0, 0)),
    # 2.0 drops the empty one where there are others.
    ("The", ["The", "cat"], (1, 0), (0, 0)),
    ("cat", ["The", "cat"], (1, 1), (1, 1)),
  ],
)
def test_gold_answers_that_are_empty_once_normalised(predicted, gold, v1, v2):
  assert score_v1(predicted, gold) == v1
  assert score_v2(predicted, gold) == v2


def test_no_gold_answer():
  assert score_v2("", []) == (1, 1)
  assert score_v2("cat", []) == (0, 0)
  assert score_v2("The", []) == (1, 1)  # As in the script.


def test_evaluate_v1():
  gold = {"a": ["cat"], "b": ["black cat"], "c": ["dog"], "d": ["The"]}
  values = metrics.evaluate_v1(
    gold, {"a": "the cat", "b": "big black cat", "d": "the", "z": "dog"}
  )
  # c has no prediction and counts as 0; z is not a question.
  assert values == pytest.approx({"exact_match": 2 / 4, "f1": 1.8 / 4})


GOLD = {
  "a": ["cat"],
  "b": ["black cat", "cat"],
  "c": [],
  "d": [],
  "e": ["one two three"],
}
ANSWERS = {"a": "the cat", "b": "big black cat", "c": "x", "d": "", "e": "one"}


def test_evaluate_v2():
  # e: 1 of 1 and 1 of 3 words: 2 * (1/3) / (4/3) = 1/2.
  assert metrics.evaluate_v2(GOLD, ANSWERS) == pytest.approx(
    {
      "exact_match": 2 / 5,
      "f1": (1 + 0.8 + 0 + 1 + 0.5) / 5,
      "has_answer_exact_match": 1 / 3,
      "has_answer_f1": 2.3 / 3,
      "no_answer_accuracy": 1 / 2,
    }
  )
  # Missing: 0.
  some = {key: ANSWERS[key] for key in "abc"}
  assert metrics.evaluate_v2(GOLD, some)["f1"] == pytest.approx(1.8 / 5)
  # Metrics of empty groups are left out.
  assert set(metrics.evaluate_v2({"c": []}, {"c": ""})) == {
    "exact_match",
    "f1",
    "no_answer_accuracy",
  }


def test_best_thresholds():
  """Never answering scores 2 of 5. Answering in the order of the odds adds:
  a +1, c -1, b 0.8 (exact 0), d 0 (its answer is empty), e 0.5 (exact 0)."""
  odds = {"a": -3.0, "c": -1.0, "b": 0.5, "d": 1.0, "e": 4.0}
  # Totals of F1: 2, 3, 2, 2.8, 2.8, 3.3; exact: 2, 3, 2, 2, 2, 2.
  assert metrics.best_thresholds(GOLD, ANSWERS, odds) == pytest.approx(
    {
      "best_exact_match": 3 / 5,
      "best_exact_match_threshold": -3.0,
      "best_f1": 3.3 / 5,
      "best_f1_threshold": 4.0,
    }
  )
  # Above the last; the calibrated threshold gives the same score.
  assert metrics.calibrate_threshold(GOLD, ANSWERS, odds) == 5.0
  odds["e"] = -2.0  # 2, 3, 3.5, 2.5, 3.3, 3.3: e is the last to be answered.
  found = metrics.best_thresholds(GOLD, ANSWERS, odds)
  assert found["best_f1"] == pytest.approx(3.5 / 5)
  assert found["best_f1_threshold"] == -2.0
  assert (
    metrics.calibrate_threshold(GOLD, ANSWERS, odds) == -1.5
  )  # Midway to c.


def test_calibrate_is_the_best_of_all_thresholds():
  """Tries all of them, on random sets with many ties."""
  draw = random.Random(5)
  for _ in range(200):
    keys = [str(i) for i in range(draw.randrange(1, 9))]
    gold = {key: ["cat"] * draw.randrange(2) for key in keys}
    answers = {key: draw.choice(["cat", "cat sat", "dog"]) for key in keys}
    odds = {key: float(draw.randrange(-3, 3)) for key in keys}

    def score(threshold, gold=gold, answers=answers, odds=odds):
      kept = {k: "" if odds[k] > threshold else answers[k] for k in gold}
      return metrics.evaluate_v2(gold, kept)["f1"]

    threshold = metrics.calibrate_threshold(gold, answers, odds)
    best = max(score(t) for t in np.arange(-4.5, 4))
    assert score(threshold) == pytest.approx(best)
    # With room for rounding errors.
    assert score(threshold - 0.1) == score(threshold + 0.1)


def test_against_transformers():
  peer = pytest.importorskip("transformers.data.metrics.squad_metrics")
  draw = random.Random(7)
  words = ["The", "a", "cat", "Cat.", "—", "“an”", "3.5", "\u3000", "é", "it's"]

  def text():
    return "".join(draw.choice(words) + " " * draw.randrange(2) for _ in "abc")

  for _ in range(500):
    predicted, gold = text(), text()
    found = score_v2(predicted, [gold])
    assert found.exact_match == peer.compute_exact(gold, predicted)
    assert found.f1 == pytest.approx(peer.compute_f1(gold, predicted))
