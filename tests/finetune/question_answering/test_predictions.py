"""Answers from scores by hand: n-best, no answer, thresholds, files."""

import json

import numpy as np
import pytest

from helpers.questions import EXAMPLES, make
from maskedlm.core.errors import DataError
from maskedlm.finetune.question_answering import question_answering
from maskedlm.finetune.question_answering.rows import answer_characters


def outputs_of(rows):
  """Returns Outputs, given (null, {(first, last): score}) of each row."""
  return {
    "null": [np.float32(null) for null, _ in rows],
    "spans": [
      np.array([*spans, *[(0, 0)] * (5 - len(spans))], np.int32)
      for _, spans in rows
    ],
    "scores": [
      np.array([*spans.values(), *[-2e9] * (5 - len(spans))], np.float32)
      for _, spans in rows
    ],
  }


def decode(examples, outputs, tuned=None, **options):
  app = make(**options)
  return app.decode(examples, app.make_rows(examples), outputs, tuned or {})


def test_n_best_over_the_windows():
  example = EXAMPLES[1]._replace(context="a b a c e f a b i j k")
  outputs = outputs_of(
    [
      (9.0, {(0, 1): 3.0, (3, 3): 2.0, (5, 5): 1.0}),
      # "a b" again, and better.
      (9.0, {(6, 7): 4.0, (8, 10): 2.5}),
    ]
  )
  (made,) = decode([example], outputs)
  shares = np.exp([4.0, 2.5, 2.0, 1.0])
  shares /= shares.sum()
  found = [(n["answer"], n["start"], n["end"]) for n in made["nbest"]]
  assert found == [
    ("a b", 12, 15),
    ("i j k", 16, 21),
    ("c", 6, 7),
    ("f", 10, 11),
  ]
  assert [n["score"] for n in made["nbest"]] == pytest.approx(list(shares))
  assert (made["id"], made["question"]) == ("q1", example.question)
  assert {k: made[k] for k in made["nbest"][0]} == made["nbest"][0]
  assert "null_odds" not in made  # In 1.1 there is always an answer.
  json.dumps(made)
  assert question_answering.format_prediction(made) == f"a b\t{shares[0]:.3f}"


def test_the_window_where_no_answer_is_least_likely_decides():
  outputs = outputs_of([(9.0, {(0, 0): 1.0}), (2.5, {(8, 8): 2.0})])
  (made,) = decode(EXAMPLES[1:2], outputs, allow_impossible=True)
  assert made["null_odds"] == pytest.approx(2.5 - 2.0)
  assert [n["answer"] for n in made["nbest"]] == ["", "i", "a"]
  shares = np.exp([2.5, 2.0, 1.0])
  assert made["score"] == pytest.approx(shares[0] / shares.sum())
  assert (made["answer"], made["start"], made["end"]) == ("", None, None)
  assert question_answering.format_prediction(made).startswith(
    "(no answer)\t0."
  )


def test_the_threshold():
  outputs = outputs_of([(9.0, {(0, 0): 1.0}), (2.5, {(8, 8): 2.0})])

  def answer(threshold):
    tuned = {"null_threshold": threshold, "f1": 0.3}
    options = {"allow_impossible": True}
    (made,) = decode(EXAMPLES[1:2], outputs, tuned, **options)
    return made["answer"], made["start"]

  # null_odds are 0.5: no answer if they exceed the threshold.
  assert answer(0.4) == ("", None)
  assert answer(0.5) == ("i", 16)
  assert answer(-3.0) == ("", None)
  assert answer(7.0) == ("i", 16)
  # A given one replaces it, and none is calibrated.
  options = {"allow_impossible": True, "null_threshold": 0.4}
  (made,) = decode(EXAMPLES[1:2], outputs, {"null_threshold": 7.0}, **options)
  assert made["answer"] == ""
  assert make(**options).calibrate([], None, {}) == {"null_threshold": 0.4}


@pytest.mark.parametrize("allow_impossible", [False, True])
def test_a_text_without_tokens_has_no_answer(allow_impossible):
  outputs = outputs_of([(-3.0, {})])
  (made,) = decode(
    EXAMPLES[3:],
    outputs,
    {"null_threshold": 50.0},
    allow_impossible=allow_impossible,
  )
  assert (made["answer"], made["start"], made["score"]) == ("", None, 1.0)
  assert len(made["nbest"]) == 1
  json.dumps(made, allow_nan=False)


def test_whitespace_tokens_are_no_answers():
  """A token of whitespace alone has an empty span at its end."""
  text = "ab  \n cd"
  offsets = np.array([[0, 2], [6, 6], [6, 8]], np.int32)
  assert answer_characters(text, offsets, 0, 1) == (0, 2)
  assert answer_characters(text, offsets, 1, 2) == (6, 8)
  assert answer_characters(text, offsets, 1, 1) == (6, 6)
  outputs = outputs_of([(0.0, {(1, 1): 9.0, (0, 1): 4.0, (0, 0): 3.0})])
  found = question_answering.n_best(text, offsets, outputs, 20)
  assert found == [{"answer": "ab", "start": 0, "end": 2, "score": 4.0}]


def test_calibrate_and_score():
  """q1's best answer, "f g", is correct; q2's is "i", but it has none."""
  app = make(allow_impossible=True)
  examples = EXAMPLES[1:3]
  rows = app.make_rows(examples)
  outputs = outputs_of(
    [
      (0.5, {(5, 6): 1.0}),
      (0.0, {(9, 10): 0.0}),
      (3.0, {(0, 0): 1.0}),
      (4.0, {(8, 8): 2.0}),
    ]
  )
  tuned = app.calibrate(examples, rows, outputs)
  # Odds: 0 - 1 and 3 - 2.
  assert tuned == {"null_threshold": 0.0}
  predictions = app.decode(examples, rows, outputs, tuned)
  assert [p["answer"] for p in predictions] == ["f g", ""]
  expected = {
    "exact_match": 1.0,
    "f1": 1.0,
    "has_answer_exact_match": 1.0,
    "has_answer_f1": 1.0,
    "no_answer_accuracy": 1.0,
    "best_exact_match": 1.0,
    "best_exact_match_threshold": -1.0,
    "best_f1": 1.0,
    "best_f1_threshold": -1.0,
  }
  assert app.score(examples, predictions) == expected
  # Another threshold is worse; the best scores stay the same.
  bold = app.decode(examples, rows, outputs, {"null_threshold": 5.0})
  assert app.score(examples, bold) == {
    **expected,
    "exact_match": 0.5,
    "f1": 0.5,
    "no_answer_accuracy": 0.0,
  }
  plain = make()
  assert plain.calibrate(examples, rows, outputs) == {}
  assert plain.best == "f1"
  predictions = plain.decode(examples, rows, outputs, {})
  assert plain.score(examples[:1], predictions[:1]) == {
    "exact_match": 1.0,
    "f1": 1.0,
  }
  with pytest.raises(DataError, match=r"input: no answers; expected"):
    plain.score(EXAMPLES[3:], predictions[:1])


def test_report_and_export():
  app = make(allow_impossible=True)
  examples = EXAMPLES[1:3]
  outputs = outputs_of([(0.0, {(5, 5): 1.0}), *[(0.0, {(8, 8): 0.5})] * 3])
  predictions = app.decode(examples, app.make_rows(examples), outputs, {})
  files = question_answering.export_predictions(predictions)
  assert json.loads(files["predictions.json"]) == {"q1": "f", "q2": "i"}
  assert json.loads(files["null_odds.json"]) == {"q1": -1.0, "q2": -0.5}
  report = question_answering.format_tables(examples, predictions)
  assert set(files) - set(report) == {"nbest_predictions.json"}
  assert set(report) - set(files) == {"mistakes.tsv", "by_question.txt"}
  assert report["mistakes.tsv"].split("\n")[1:] == [
    "q2\t0.000\ti\t(no answer)\tv w x",
    "q1\t0.667\tf\tf g\tv w x y z",
    "",
  ]
