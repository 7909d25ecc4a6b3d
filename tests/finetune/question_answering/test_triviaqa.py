"""TriviaQA's own files, and where answers are taken to be in their texts."""

import json

import pytest

from maskedlm.core.errors import DataError
from maskedlm.finetune.question_answering import squad, triviaqa
from maskedlm.finetune.question_answering.questions import ABSENT, GoldAnswer

TEXTS = {
  "wikipedia/England.txt": "It isn't used in the USAF.\nThe usa and the U.S.",
  "web/12/12_3.txt": "A text about nothing. It has no answer; \n none at all.",
  "web/12/12_4.txt": "The United States of America is large.",
}
ANSWER = {
  "Value": "USA",
  "Aliases": ["United States", "United States of America", "USA", "U.S."],
  "NormalizedAliases": ["usa", "u s"],
  "Type": "WikipediaEntity",
}
ENTRY = {
  "QuestionId": "tc_1",
  "Question": "Which country?",
  "Answer": ANSWER,
  "EntityPages": [{"Filename": "England.txt", "Title": "England"}],
  "SearchResults": [
    {"Filename": "12/12_3.txt", "Rank": 0},
    {"Filename": "12/12_4.txt"},
    {"Filename": "12/12_3.txt"},
  ],
}


@pytest.fixture
def write(tmp_path):
  """Writes the texts and a file of questions; returns the file's path."""
  for name, text in TEXTS.items():
    path = tmp_path / "evidence" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

  def make(*entries, split="train", **more):
    path = tmp_path / "qa" / f"web-{split}.json"
    path.parent.mkdir(exist_ok=True)
    top = {"Data": [*entries], "Domain": "Web", "Split": split, **more}
    path.write_text(json.dumps(top, indent=4))
    return str(path)

  return make


def read(path, *, evidence="", evidence_words=0):
  return squad.read_questions(
    path,
    allow_impossible=False,
    fix_offsets=False,
    evidence=evidence,
    evidence_words=evidence_words,
  )


def test_training_leaves_out_texts_without_the_answer(write, capsys):
  bare = {"QuestionId": "tc_2", "Question": "Who?", "Answer": ANSWER}
  path = write(ENTRY, bare)
  found = read(path)
  # Rows: one page, two different results; one of these has no answer.
  assert [e.id for e in found] == [
    "tc_1--England.txt",
    "tc_1--12/12_4.txt",
  ]
  assert [e.answers[0] for e in found] == [
    GoldAnswer("usa", 31),  # Not the "usa" in USAF.
    GoldAnswer("United States of America", 4),  # The longest name there.
  ]
  for example in found:
    text, at = example.answers[0]
    assert example.context[at : at + len(text)] == text
    assert {start for _, start in example.answers[1:]} == {ABSENT}
  said = capsys.readouterr().err.splitlines()
  assert {line.removeprefix(f"{path}: ") for line in said} == {
    f"{triviaqa.LEFT_OUT}: 1",
    f"{triviaqa.TWICE}: 1",
    f"{triviaqa.WITHOUT_TEXT}: 1",
  }


def test_scoring_keeps_them(write, capsys):
  found = read(write(ENTRY, split="dev"))
  assert [e.id for e in found] == [
    "tc_1--England.txt",
    "tc_1--12/12_3.txt",
    "tc_1--12/12_4.txt",
  ]
  assert {start for _, start in found[1].answers} == {ABSENT}
  assert f"{triviaqa.UNMATCHED}: 1" in capsys.readouterr().err
  gold = squad.gold_answers(found)
  assert sorted(gold["tc_1--12/12_3.txt"]) == sorted(
    {"USA", "United States", "United States of America", "U.S.", "usa", "u s"}
  )


def test_without_an_answer_a_file_can_be_predicted(write):
  entry = {name: x for name, x in ENTRY.items() if name != "Answer"}
  assert {e.answers for e in read(write(entry, split="test"))} == {None}


def test_only_the_first_words_are_read(write, capsys):
  found = read(write(ENTRY, split="dev"), evidence_words=7)
  assert [e.context for e in found] == [
    "It isn't used in the USAF.\nThe",
    "A text about nothing. It has no",
    "The United States of America is large.",
  ]
  assert f"{triviaqa.CUT}: 2" in capsys.readouterr().err


@pytest.mark.parametrize(
  ("text", "names", "found"),
  [
    ("İx, the Straße", ["STRASSE", "straße"], ("Straße", 8)),
    ("one-two", ["two"], ("two", 4)),
    ("a b a.b", ["A.B"], ("a.b", 4)),
    ("(Ab", ["(ab"], ("(Ab", 0)),
    ("cats, cat", ["cat"], ("cat", 6)),
    ("cats", ["cat"], None),
    ("", ["cat"], None),
  ],
)
def test_places(text, names, found):
  assert triviaqa.find_answer(text, names) == found


@pytest.mark.parametrize(
  ("change", "named"),
  [
    ({"QuestionId": 3}, "Data[0]: 'QuestionId' is '3'; expected a string"),
    ({"Question": " "}, "question tc_1: the question is empty"),
    ({"Answer": {}}, "question tc_1: no 'Value'"),
    ({"Answer": {"Value": " "}}, "question tc_1: the answer is empty"),
    ({"Answer": {"Value": "x", "Aliases": "y"}}, "'Aliases' is 'y'"),
    ({"Answer": {"Value": "x", "Aliases": [3]}}, "answer '3'; expected a text"),
    ({"SearchResults": [{"Rank": 1}]}, "SearchResults: no 'Filename'"),
    ({"EntityPages": [{"Filename": "No.txt"}]}, "No.txt: no such text in"),
    ({"EntityPages": {}}, "'EntityPages' is '{}'; expected a list"),
  ],
)
def test_bad_files_are_one_line(write, change, named):
  with pytest.raises(DataError) as error:
    read(write({**ENTRY, **change}))
  assert named in str(error.value)
  assert "\n" not in str(error.value)


def test_a_missing_folder_of_texts_is_named(write, tmp_path):
  path = write(ENTRY)
  with pytest.raises(DataError, match=r"no folder .*none.*config\.task\.evid"):
    read(path, evidence=str(tmp_path / "none"))
  assert len(read(path, evidence=str(tmp_path / "evidence"))) == 2
  (tmp_path / "evidence").rename(tmp_path / "texts")
  with pytest.raises(DataError, match=r"no folder .*evidence"):
    read(path)


def test_nothing_left_is_said(write):
  entry = {**ENTRY, "Answer": {"Value": "xyz"}}
  with pytest.raises(DataError, match="no questions"):
    read(write(entry))


def test_a_damaged_file_is_one_line(write):
  path = write(ENTRY)
  with open(path, "r+") as file:
    file.truncate(200)
  with pytest.raises(DataError, match=r"web-train\.json:\d+: not JSON"):
    read(path)
