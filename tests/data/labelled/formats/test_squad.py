"""SQuAD's files: reading, errors, input lines, official predictions."""

import json

import pytest

from helpers.squad_files import CONTEXT, question, read
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats import squad
from maskedlm.data.labelled.formats.squad import Example, GoldAnswer
from maskedlm.finetune.question_answering import question_answering


def write(path, *questions, context=CONTEXT):
  paragraphs = [{"context": context, "qas": list(questions)}]
  data = {"version": "1.1", "data": [{"title": "T", "paragraphs": paragraphs}]}
  path.write_text(json.dumps(data), encoding="utf-8")
  return str(path)


@pytest.fixture
def path(tmp_path):
  return tmp_path / "a.json"


def test_read(path):
  source = write(
    path,
    question(answers=[("Bob", 8), ("Bob, of Köln", 18)]),
    question("q2", "Which?", answers=[("😀", 37)]),
  )
  found = read(source)
  assert found == [
    Example(
      "Who?",
      CONTEXT,
      "q1",
      (GoldAnswer("Bob", 8), GoldAnswer("Bob, of Köln", 18)),
      f"{path}: question q1",
    ),
    Example(
      "Which?", CONTEXT, "q2", (GoldAnswer("😀", 37),), f"{path}: question q2"
    ),
  ]
  assert found[0].context is found[1].context  # All examples share one string.
  assert {x.id: [a.text for a in x.answers] for x in found} == {
    "q1": ["Bob", "Bob, of Köln"],
    "q2": ["😀"],
  }


def test_read_the_real_files(data_dir):
  found = read(str(data_dir / "squad" / "train-v1.1.json"))
  assert len(found) == 8_787
  assert all(e.answers for e in found)
  found = read(
    str(data_dir / "squad" / "train-v2.0.json"), allow_impossible=True
  )
  assert len(found) == 9_606
  assert sum(e.answers == () for e in found) == 4_727


def test_version_2(path):
  source = write(
    path,
    question("q1", is_impossible=False),
    question("q2", answers=(), is_impossible=True, plausible_answers=[]),
    question("q3", answers=()),
  )
  found = read(source, allow_impossible=True)
  assert [len(e.answers) for e in found] == [1, 0, 0]
  with pytest.raises(DataError) as error:
    read(source)
  assert str(error.value) == (
    f"{path}: question q2: no answer; expected at least one (SQuAD 1.1). "
    "For SQuAD 2.0, use configs/squad.py:v2 or set "
    "--config.task.allow_impossible=True."
  )


# --- Answers ---


def test_characters_are_code_points_in_any_spelling(path):
  """JSON may contain an emoji as a pair of surrogates, or half a pair."""
  text = json.dumps(
    {
      "data": [
        {
          "paragraphs": [
            {
              "context": "😀 \ud800 cat",
              "qas": [question(answers=[("cat", 4)])],
            }
          ]
        }
      ]
    }
  )
  assert "\\ud83d\\ude00 \\ud800 cat" in text
  path.write_text(text)
  (found,) = read(str(path))
  assert found.context == "😀 \ufffd cat"
  assert found.answers == (GoldAnswer("cat", 4),)


# --- Rows of the Hub: helpers/odd_answers.py has their forms ---


def test_files_without_answers_can_only_be_predicted(path):
  bare = [question(key) | {"answers": None} for key in ("q1", "q2")]
  found = read(write(path, *bare))
  assert [e.answers for e in found] == [None, None]
  with pytest.raises(DataError, match=r"question q1: no answers; expected"):
    question_answering.GOLD.of(found)


# --- Input of predict, official output ---


def test_parse_question():
  assert squad.parse_question(
    '{"question": "Q?", "context": "C", "id": 7}'
  ) == Example("Q?", "C", "7")
  assert squad.parse_question("Q?\tC\tD") == Example("Q?", "C\tD")
  assert (
    squad.parse_question('{"question": "\\ud800?", "context": "C"}').question
    == "\ufffd?"
  )
  with pytest.raises(DataError, match=r"input: not JSON"):
    squad.parse_question('{"question": ')
  with pytest.raises(DataError, match=r"no 'context'; there are 'question'"):
    squad.parse_question('{"question": "Q?"}')
  with pytest.raises(DataError, match=r"input 'Q\?' is one text; expected"):
    squad.parse_question("Q?")


def test_official_files():
  predictions = [
    {
      "id": "q1",
      "answer": "Köln",
      "null_odds": -1.5,
      "nbest": [
        {"answer": "Köln", "score": 0.75},
        {"answer": "", "score": 0.25},
      ],
    },
    {"id": "q2", "answer": "", "null_odds": 2.0, "nbest": []},
  ]
  files = {
    **squad.write_predictions(predictions),
    **squad.write_n_best(predictions),
  }
  assert {name: json.loads(text) for name, text in files.items()} == {
    "predictions.json": {"q1": "Köln", "q2": ""},
    "null_odds.json": {"q1": -1.5, "q2": 2.0},
    "nbest_predictions.json": {
      "q1": [
        {"text": "Köln", "probability": 0.75},
        {"text": "", "probability": 0.25},
      ],
      "q2": [],
    },
  }
  # The official scripts open files in the locale's encoding.
  assert all(text.isascii() for text in files.values())
  del predictions[0]["null_odds"]
  assert set(squad.write_predictions(predictions)) == {"predictions.json"}
