"""MRQA's format: spans with inclusive ends, and gold texts without a place."""

import gzip
import json

import pytest

from helpers.squad_files import CONTEXT, read
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats import squad
from maskedlm.data.labelled.formats.questions import ABSENT, GoldAnswer

HEADER = {"header": {"dataset": "TriviaQA", "split": "train"}}
# "Bob" is at 8 to 10, 18 to 20 and 45 to 47; "Köln" at 26 to 29.
BOB = {
  "qid": "b",
  "id": "not this one",
  "question": "Who left?",
  "question_tokens": [["Who", 0]],
  "detected_answers": [
    {"text": "BOB", "char_spans": [[18, 20], [8, 10]], "token_spans": [[3, 3]]},
    {"text": "Köln", "char_spans": [[26, 29]]},
  ],
  "answers": ["Robert", "Bob", "Köln"],
}
ADA = {
  "qid": "a",
  "question": "Who met him?",
  "detected_answers": [{"text": "Ada", "char_spans": [[0, 2]]}],
  "answers": ["Ada"],
}


def line(*questions, context=CONTEXT):
  return json.dumps({"id": "", "context": context, "qas": [*questions]})


def write(path, *lines):
  text = "\n".join([json.dumps(HEADER), *lines]) + "\n"
  is_gz = path.suffix == ".gz"
  path.write_bytes(gzip.compress(text.encode()) if is_gz else text.encode())
  return str(path)


@pytest.mark.parametrize("name", ["m.jsonl", "m.jsonl.gz"])
def test_rows(tmp_path, name):
  other = {**ADA, "qid": "c", "detected_answers": [], "answers": ["Eve", "Eva"]}
  found = read(write(tmp_path / name, line(BOB, ADA), line(other)))
  assert [(e.id, e.question, e.context) for e in found] == [
    ("b", "Who left?", CONTEXT),
    ("a", "Who met him?", CONTEXT),
    ("c", "Who met him?", CONTEXT),
  ]
  # The first place in the file is trained; the texts are the context's.
  assert found[0].answers == (
    GoldAnswer("Bob", 18),
    GoldAnswer("Köln", 26),
    GoldAnswer("Robert", ABSENT),
  )
  assert found[2].answers == (
    GoldAnswer("Eve", ABSENT),
    GoldAnswer("Eva", ABSENT),
  )
  assert squad.gold_answers(found) == {
    "b": ["Bob", "Köln", "Robert"],
    "a": ["Ada"],
    "c": ["Eve", "Eva"],
  }


def test_the_rows_of_the_hub(tmp_path):
  """Lists of objects are objects of lists there, and rows are flat."""
  answers = {
    "text": ["BOB", "Köln"],
    "char_spans": [
      {"start": [18, 8], "end": [20, 10]},
      {"start": [26], "end": [29]},
    ],
    "token_spans": [{"start": [3], "end": [3]}] * 2,
  }
  row = {**BOB, "context": CONTEXT, "subset": "x", "detected_answers": answers}
  del row["id"]
  plain, flat = tmp_path / "plain.jsonl", tmp_path / "flat.jsonl"
  flat.write_text(json.dumps(row) + "\n" + json.dumps({**row, "qid": "z"}))
  found = read(str(flat))
  assert [e.id for e in found] == ["b", "z"]
  (wanted,) = read(write(plain, line(BOB)))
  assert found[0]._replace(where="") == wanted._replace(where="")


def with_spans(*spans):
  answer = {"text": "Bob", "char_spans": [*spans]}
  return {**BOB, "detected_answers": [answer]}


@pytest.mark.parametrize(
  ("question", "named"),
  [
    (with_spans([8, 48]), "[8, 48]; expected 0 <= FIRST <= LAST < 48"),
    (with_spans([10, 8]), "[10, 8]; expected 0 <= FIRST"),
    (with_spans([-1, 8]), "[-1, 8]; expected 0 <= FIRST"),
    (with_spans([8, 11]), "'Bob.'; expected 10, as LAST is included"),
    (with_spans([7, 7]), "whitespace only"),
    (with_spans([8]), "expected [FIRST, LAST], two whole numbers"),
    (with_spans([8, "10"]), "expected [FIRST, LAST], two whole numbers"),
    (with_spans(8), "char_spans has 8"),
    ({**BOB, "detected_answers": "Bob"}, "'detected_answers' is 'Bob'"),
    ({**BOB, "detected_answers": [{"text": "Bob"}]}, "'char_spans' is 'None'"),
    ({**BOB, "answers": [3]}, "'3'; expected a list of texts"),
    ({**BOB, "answers": "Bob"}, "'answers' is 'Bob'; expected a list"),
    ({**BOB, "answers": [], "detected_answers": []}, "no answer; expected"),
    (
      {**BOB, "detected_answers": {"text": ["a", "b"], "char_spans": [[]]}},
      "text and char_spans have [2, 1] values",
    ),
  ],
)
def test_bad_fields_are_one_line(tmp_path, question, named):
  path = write(tmp_path / "m.jsonl", line(ADA), line(question))
  with pytest.raises(DataError) as error:
    read(path)
  assert str(error.value).startswith(f"{path}: question b: ")
  assert named in str(error.value)
  assert "\n" not in str(error.value)
