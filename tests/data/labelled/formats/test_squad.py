"""SQuAD's files: reading, errors, input lines, official predictions."""

import json

import pytest

from helpers.squad_files import CONTEXT, question, read
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats import squad
from maskedlm.data.labelled.formats.questions import Example, GoldAnswer


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
  assert squad.gold_answers(found) == {
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
  with pytest.raises(DataError, match=r"configs/squad\.py:v2"):
    read(str(data_dir / "squad" / "train-v2.0.json"))


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


def test_an_answerless_question_of_version_1(path):
  with pytest.raises(DataError, match=r"question q1: no answer; expected"):
    read(write(path, question(answers=())))


@pytest.mark.parametrize("allow_impossible", [False, True])
def test_flags_that_contradict_the_answers(path, allow_impossible):
  options = {"allow_impossible": allow_impossible}
  source = write(path, question(is_impossible=True))
  with pytest.raises(
    DataError, match=r"q1: is_impossible is true, but there is"
  ):
    read(source, **options)
  source = write(path, question(answers=(), is_impossible=False))
  with pytest.raises(DataError, match=r"no answer, but is_impossible is false"):
    read(source, **options)


# --- Offsets ---


def test_an_answer_that_is_not_at_its_offset(path):
  with pytest.raises(DataError) as error:
    read(write(path, question("q7", answers=[("Bob", 19)])))
  assert str(error.value) == (
    f"{path}: question q7: the answer 'Bob' is not at its answer_start=19, "
    "where the context has 'ob,'; it is at 8, 18, 44: correct answer_start "
    "(characters, not bytes), or set "
    "--config.task.fix_offsets=True to take the nearest."
  )
  with pytest.raises(DataError, match=r"'Bob' is not at its answer_start=-3"):
    read(write(path, question(answers=[("Bob", -3)])))
  with pytest.raises(DataError, match=r"where the context has ''; it is at 8"):
    read(write(path, question(answers=[("Bob", 900)])))


@pytest.mark.parametrize("fix_offsets", [False, True])
def test_an_answer_that_is_not_in_the_context(path, fix_offsets):
  # Another Unicode form: K, o, a combining diaeresis, l, n.
  source = write(path, question(answers=[("Ko\u0308ln", 26)]))
  if fix_offsets:
    (found,) = read(source, fix_offsets=True)
    assert found.answers == (GoldAnswer("Köln", 26),)
  else:
    with pytest.raises(DataError, match=r"has 'Köln,'; it is at 26 in other"):
      read(source)
  source = write(path, question(answers=[("Rome", 3)]))
  with pytest.raises(DataError, match=r"the context doesn't contain it"):
    read(source, fix_offsets=fix_offsets)


def test_an_empty_answer_is_none(path, capsys):
  source = write(
    path,
    question(answers=[("", 3), ("Bob", 8), (" ", 0)]),
    question("q2", answers=[("", -1)]),
  )
  found = read(source, allow_impossible=True)
  assert [e.answers for e in found] == [(GoldAnswer("Bob", 8),), ()]
  assert "empty answers, which are none: 3" in capsys.readouterr().err
  with pytest.raises(DataError, match=r"question q2: no answer; expected"):
    read(source)


def test_fixed_offsets(path, capsys):
  source = write(
    path,
    question("q1", answers=[("Bob", 17), ("Bob", 900), ("Ada", 0)]),
    question("q2", answers=[("Bob", -1)]),
    question("q3"),
  )
  found = read(source, fix_offsets=True)
  assert [[a.start for a in e.answers] for e in found] == [
    [18, 44, 0],
    [8],
    [8],
  ]
  for e in found:
    for text, start in e.answers:
      assert e.context[start : start + len(text)] == text
  logged = capsys.readouterr().err
  assert "answers of 1 question were not at their off" in logged
  assert "answers of 1 question without answer_start were" in logged
  read(write(path, question()), fix_offsets=True)
  assert not capsys.readouterr().err


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


# --- Files that can't be used ---


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("", r"a\.json: the file is empty; expected"),
    (" \n", r"a\.json: the file is empty"),
    ('{"data":\n [{"x": 1},\n}', r"a\.json:3: not JSON \(.* at column 1\)"),
    ("[]", r"a\.json: no questions; expected at least one"),
    ("3", r"a\.json: a JSON int; expected an object with 'data'"),
    ('{"data": ["x"]}', r"data\[0\]: a JSON str; expected an object with"),
    (
      '{"version": "1.1"}',
      r"a\.json: no 'data'; expected a list in addition",
    ),
    ('{"data": {}}', r"a\.json: 'data' is '{}'; expected a list"),
    ('{"data": []}', r"a\.json: no questions; expected at least one"),
    (
      '{"data": [3]}',
      r"data\[0\]: a JSON int; expected an object with 'paragraphs'",
    ),
    (
      '{"data": [{"paragraphs": [{"qas": []}]}]}',
      r"paragraphs\[0\]: no 'context'",
    ),
  ],
)
def test_broken_files(path, text, message):
  path.write_text(text)
  with pytest.raises(DataError, match=message):
    read(str(path))


def test_no_such_file_and_not_utf8(path):
  with pytest.raises(DataError, match=r"a\.json: No such file"):
    read(str(path))
  path.write_bytes(b'{"data": "\xff"}')
  with pytest.raises(DataError, match=r"a\.json:1: not UTF-8"):
    read(str(path))


def without(name, entry):
  return {key: value for key, value in entry.items() if key != name}


@pytest.mark.parametrize(
  ("entry", "message"),
  [
    (question([1]), r"qas\[0\]: 'id' is '\[1\]'; expected a text or a number"),
    (without("question", question()), r"q1: no 'question'; expected a string"),
    (question(text=7), r"q1: 'question' is '7'; expected a string"),
    (question(text=" "), r"q1: the question is empty"),
    ({**question(), "answers": 7}, r"q1: 'answers' is '7'; expected a list"),
    ({**question(), "answers": ["Bob"]}, r"q1: a JSON str; expected an object"),
    (question(answers=[(7, 8)]), r"q1: 'text' is '7'; expected a string"),
    (
      question(answers=[("Bob", True)]),
      r"'answer_start' is 'True'; expected a",
    ),
    (question(answers=[("Bob", "x")]), r"'answer_start' is 'x'; expected a w"),
    (question(answers=[("Bob", 8.5)]), r"'answer_start' is '8\.5'; expected a"),
    (question(is_impossible="maybe"), r"'is_impossible' is 'maybe'; expected"),
    (
      question(answers=[("Bob", None)]),
      r"'Bob' has no answer_start; it is at 8, 18, 44: .* take the first",
    ),
    (
      {**question(), "answers": {"text": ["Bob"], "answer_start": [8, 9]}},
      r"1 text of answers, but answer_start is '\[8, 9\]'; expected a list of",
    ),
  ],
)
def test_missing_and_wrong_fields(path, entry, message):
  with pytest.raises(DataError, match=message):
    read(write(path, entry))


def test_files_without_answers_can_only_be_predicted(path):
  bare = [without("answers", question(key)) for key in ("q1", "q2")]
  found = read(write(path, *bare))
  assert [e.answers for e in found] == [None, None]
  with pytest.raises(DataError, match=r"question q1: no answers; expected"):
    squad.gold_answers(found)
  with pytest.raises(DataError, match=r"q2: no 'answers', but other questions"):
    read(write(path, question(), bare[1]))


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
  with pytest.raises(DataError, match=r"no 'context'; expected {\"question\""):
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
    **squad.format_predictions(predictions),
    **squad.format_n_best(predictions),
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
  assert set(squad.format_predictions(predictions)) == {"predictions.json"}
