"""The forms of files of questions: SQuAD's, the Hub's, and those of others."""

import json

import pytest

from helpers.squad_files import CONTEXT, question, read
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats.questions import GoldAnswer

BOB, EMOJI = GoldAnswer("Bob", 8), GoldAnswer("😀", 37)


def flat(key, answers, **more):
  """Returns a row as on the Hub: the context beside the question."""
  row = {"id": key, "context": CONTEXT, "question": "Who?", "title": "t"}
  if answers is not None:
    texts, starts = zip(*answers, strict=True) if answers else ((), ())
    row["answers"] = {"text": list(texts), "answer_start": list(starts)}
  return row | more


ROWS = [flat("a", [("Bob", 8)]), flat("b", [("😀", 37), ("Bob", 18)])]
WANTED = [
  ("a", CONTEXT, (BOB,)),
  ("b", CONTEXT, (EMOJI, GoldAnswer("Bob", 18))),
]


def article(*questions):
  return {"paragraphs": [{"context": CONTEXT, "qas": list(questions)}]}


def contents(examples):
  return [(e.id, e.context, e.answers) for e in examples]


@pytest.mark.parametrize(
  ("name", "text"),
  [
    ("a.jsonl", "\n".join(map(json.dumps, ROWS))),
    ("a.json", "\n\n".join(map(json.dumps, ROWS)) + "\n"),
    ("a.json", json.dumps(ROWS, indent=2)),
    ("a.json", json.dumps({"version": 1, "data": ROWS})),
    ("a.txt", "\ufeff" + json.dumps(ROWS)),
  ],
)
def test_flat_rows_in_any_file(tmp_path, name, text):
  path = tmp_path / name
  path.write_text(text, encoding="utf-8")
  found = read(str(path))
  assert contents(found) == WANTED
  assert found[0].context is found[1].context


def test_parquet_by_its_first_bytes(tmp_path):
  pyarrow = pytest.importorskip("pyarrow")
  parquet = pytest.importorskip("pyarrow.parquet")
  path = tmp_path / "a.json"
  rows = [*ROWS, flat("c", [])]
  parquet.write_table(pyarrow.Table.from_pylist(rows), path)
  found = read(str(path), allow_impossible=True)
  assert contents(found) == [*WANTED, ("c", CONTEXT, ())]
  assert found[2].where == f"{path}:3"
  with pytest.raises(DataError, match=r"a\.json:3: no answer; expected"):
    read(str(path))
  path.write_bytes(b"PAR1 and no more")
  with pytest.raises(DataError, match="can't be read as Parquet"):
    read(str(path))


def test_lists_of_articles_and_of_paragraphs(tmp_path):
  path = tmp_path / "a.json"
  q1, q2 = question("a"), question("b", answers=[("😀", 37)])
  wanted = [("a", CONTEXT, (BOB,)), ("b", CONTEXT, (EMOJI,))]
  for data in (
    [article(q1), article(q2)],
    article(q1, q2),
    article(q1, q2)["paragraphs"],
    {"data": article(q1, q2)["paragraphs"]},
  ):
    path.write_text(json.dumps(data))
    assert contents(read(str(path))) == wanted


def test_ids_are_texts_numbers_or_missing(tmp_path, capsys):
  path = tmp_path / "a.json"
  keys = [51870, "x", 2.0, None, "", 3.5]
  path.write_text(json.dumps([flat(key, [("Bob", 8)]) for key in keys]))
  found = read(str(path))
  ids = ["51870", "x", "2", "a.json:4", "a.json:5", "3.5"]
  assert [e.id for e in found] == ids
  assert "without an id, which are numbered: 2" in capsys.readouterr().err


@pytest.mark.parametrize(
  "answers",
  [
    [{"text": "😀", "answer_start": 37, "answer_end": 38}],
    {"text": ["😀"], "answer_start": [37]},
    {"text": "😀", "answer_start": 37},
    [{"text": "😀", "answer_start": "37"}],
    [{"text": "😀", "answer_start": 37.0}],
    [{"text": "😀", "answer_start": -1}],
    [{"text": "😀", "answer_start": None}],
    [{"text": "😀"}],
    {"text": ["😀"]},
  ],
)
def test_one_answer_in_many_forms(tmp_path, answers):
  path = tmp_path / "a.json"
  path.write_text(json.dumps(flat("a", None) | {"answers": answers}))
  assert read(str(path))[0].answers == (EMOJI,)


@pytest.mark.parametrize(
  ("flag", "answers", "count"),
  [
    ("false", [("Bob", 8)], 1),
    ("False", [("Bob", 8)], 1),
    (0, [("Bob", 8)], 1),
    (None, [("Bob", 8)], 1),
    ("True", [], 0),
    (1, [], 0),
    (True, None, 0),
    (None, [], 0),
    (None, [("", 0)], 0),
  ],
)
def test_flags_are_truths_numbers_or_texts(tmp_path, flag, answers, count):
  path = tmp_path / "a.json"
  path.write_text(json.dumps(flat("a", answers, is_impossible=flag)))
  (found,) = read(str(path), allow_impossible=True)
  assert len(found.answers) == count


def test_answers_are_found_nearby_in_other_whitespace_and_forms(tmp_path):
  path = tmp_path / "a.json"
  context = "In Ko\u0308ln,\n met  Bob. In Ko\u0308ln."
  for text, start, found in (
    ("Köln", 23, ("Ko\u0308ln", 24)),
    ("met Bob", 11, ("met  Bob", 11)),
    (" Bob ", 15, ("Bob", 16)),
    ("Köln, met Bob", 3, ("Ko\u0308ln,\n met  Bob", 3)),
  ):
    row = flat("a", [(text, start)], context=context)
    path.write_text(json.dumps([row]))
    with pytest.raises(DataError, match=r"--config\.task\.fix_offsets=True"):
      read(str(path))
    (made,) = read(str(path), fix_offsets=True)
    assert made.answers == (GoldAnswer(*found),)


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ('{"id": "a"}\n{"id": "b"}', r"a\.json:1: no 'data'; expected"),
    (f"{json.dumps(ROWS[0])}\n{{", r"a\.json:2: not JSON"),
    (json.dumps(flat("a", [], context=None)), r"'context' is 'None'"),
    (json.dumps([flat("a", []), 3]), r"a\.json: \[1\]: a JSON int; expected"),
    (json.dumps({"train": ROWS}), r"a\.json: no 'data'; expected a list"),
    ("[" * 100_000, r"a\.json:1: not JSON"),
  ],
)
def test_other_files_are_refused(tmp_path, text, message):
  path = tmp_path / "a.json"
  path.write_text(text)
  with pytest.raises(DataError, match=message):
    read(str(path), allow_impossible=True)
