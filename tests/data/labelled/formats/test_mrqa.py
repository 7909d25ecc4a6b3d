"""MRQA's format: spans with inclusive ends, and gold texts without a place."""

import gzip
import json

import pytest

from helpers.squad_files import CONTEXT, read
from maskedlm.data.labelled.formats.squad import ABSENT, GoldAnswer

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
  assert {x.id: [a.text for a in x.answers] for x in found} == {
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
