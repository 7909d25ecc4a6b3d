"""Multiple choice: the layouts, and which choice a label means."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats import choices
from maskedlm.data.labelled.formats.choices import (
  Example,
  Label,
  check_labels,
  find_index,
)


@pytest.fixture
def file(tmp_path):
  def make(name, *lines):
    path = tmp_path / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)

  return make


def test_swag(file):
  path = file(
    "train.csv",
    ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,"
    "ending0,ending1,ending2,ending3,label",
    '0,v1,34,"A, b. He",A man sits.,He,gold,"jumps, high.",a,b,c,0',
    "1,v2,35,C. She,C.,She,gen,a,b,c,d,3",
  )
  assert choices.read_examples(path) == [
    Example(
      context="A man sits.",
      choices=("jumps, high.", "a", "b", "c"),
      question="He",
      label=0,
      where=f"{path}:2",
    ),
    Example("C.", ("a", "b", "c", "d"), "She", 3, where=f"{path}:3"),
  ]
  # The test set has neither label nor source.
  path = file(
    "test.csv",
    ",video-id,fold-ind,startphrase,sent1,sent2,ending0,ending1",
    "0,v1,34,A. He,A.,He,x,y",
  )
  assert choices.read_examples(path) == [
    Example("A.", ("x", "y"), "He", where=f"{path}:2")
  ]


def test_comve(file):
  """Its answers are joined as a column of letters."""
  path = file(
    "a.csv",
    "id,FalseSent,OptionA,OptionB,OptionC,label",
    '7,"He ate, a shoe.",Too hard.,Black.,,A',
    "3,It flew.,a,b,c,C",
  )
  assert choices.read_examples(path) == [
    Example(
      context="He ate, a shoe.",
      choices=("Too hard.", "Black.", ""),  # As in the real file.
      label=0,
      key="7",
      where=f"{path}:2",
    ),
    Example("It flew.", ("a", "b", "c"), label=2, key="3", where=f"{path}:3"),
  ]


def test_own_tables_and_jsonl(file):
  path = file("own.csv", "choice0,choice1,context,label", "a,b,c,B")
  assert choices.read_examples(path) == [
    Example("c", ("a", "b"), label=1, where=f"{path}:2")
  ]
  lines = [
    {"context": "A.", "question": "Why?", "choices": ["x", "y"], "label": 1},
    {"context": "", "choices": ["x", "\ud800"], "label": 0.0, "id": 5},
    {"context": "B", "choices": ["x", "y"], "label": None},
  ]
  path = file("own.jsonl", *map(json.dumps, lines))
  assert choices.read_examples(path) == [
    Example("A.", ("x", "y"), "Why?", 1, where=f"{path}:1"),
    Example("", ("x", "\ufffd"), label=0, key="5", where=f"{path}:2"),
    Example("B", ("x", "y"), where=f"{path}:3"),
  ]
  path = path.replace(".jsonl", ".parquet")
  pq.write_table(pa.Table.from_pylist(lines[:1]), path)
  assert choices.read_examples(path) == [
    Example("A.", ("x", "y"), "Why?", 1, where=f"{path}:1")
  ]


def test_real_files(data_dir):
  folder = data_dir / "multiple_choice"
  header = ("category", "prompt", *(f"ending{i}" for i in range(4)), "label")
  for name, count in (("train", 1665), ("dev", 556)):
    read = choices.read_examples(
      str(folder / f"codah/{name}.tsv"), header=header, first_label="0"
    )
    assert len(read) == count
    assert choices.check_num_choices(read) == 4
    assert {e.label for e in read} == set(range(4))
    assert all(e.context for e in read)
  path = folder / "comve_b/training/subtaskB_data_all.csv"
  read = choices.read_examples(str(path))
  assert len(read) == 10_000 and choices.check_num_choices(read) == 3


def test_a_varying_number_of_choices(file):
  path = file(
    "a.jsonl",
    '{"context": "a", "choices": ["b", "c"], "label": 0}',
    "",
    '{"context": "a", "choices": ["b", "c", "d"], "label": 0}',
  )
  read = choices.read_examples(path)
  with pytest.raises(DataError, match=r"a.jsonl:3 has 3 choices; expected 2"):
    choices.check_num_choices(read)
  assert choices.check_num_choices(read[1:]) == 3
  with pytest.raises(DataError, match=r"a.jsonl:1 has 2 choices; expected 4"):
    choices.check_num_choices(read, 4)


def test_lines_of_predict():
  assert choices.parse_line("He sat.\ta b\tc") == Example(
    "He sat.", ("a b", "c")
  )
  made = choices.parse_line('{"context": "a", "choices": ["b", "c", "d"]}')
  assert made == Example("a", ("b", "c", "d"), where="input")
  for line in ("He sat.", "He sat.\ta"):
    with pytest.raises(DataError, match=r"input 'He sat.*two choices or more"):
      choices.parse_line(line)
  with pytest.raises(DataError, match="input: not JSON"):
    choices.parse_line('{"He sat.')


def test_answers_of_comve():
  predictions = [{"id": "7", "label": 2}, {"label": 0}]
  assert choices.write_answers(predictions) == {"answers.csv": "7,C\n1,A\n"}


# --- Which choice a label means ---

CHOICES = ("one", "two", "three")
ENDINGS = ("ending0", "ending1", "ending2")


def indices(*texts, choices=CHOICES, first="0", first_label="", **more):
  labels = [
    Label(x, choices, f"f:{i}", first=first, **more)
    for i, x in enumerate(texts, 1)
  ]
  check_labels(labels, first_label)
  return [find_index(label, first_label) for label in labels]


@pytest.mark.parametrize(
  ("texts", "options", "expected"),
  [
    (("0", "2", "1.0"), {}, [0, 2, 1]),
    (("A", "c", "B"), {}, [0, 2, 1]),
    (("two", "one"), {}, [1, 0]),
    (("", "-", "-1", "?", "2"), {}, [None, None, None, None, 2]),
    (("ending2", "1"), {"names": ENDINGS}, [2, 1]),
    (("1", "3"), {"first": "1"}, [0, 2]),  # As in WinoGrande.
    (("1", "2"), {"first": "", "first_label": "1"}, [0, 1]),
    (("1", "2"), {"first": "", "first_label": "0"}, [1, 2]),
    (("A", "1", "3", "B"), {"first_label": "1"}, [0, 0, 2, 1]),  # As in ARC.
    (("0", "0"), {"choices": ("2", "3", "1")}, [0, 0]),
    (("1", "2"), {"choices": ("2", "3", "1"), "first_label": "1"}, [0, 1]),
    (("1", "2"), {"choices": ("2", "3", "1"), "first_label": "A"}, [2, 0]),
    (("D", "2"), {"letters": ("D", "1", "2")}, [0, 2]),
  ],
)
def test_labels(texts, options, expected):
  assert indices(*texts, **options) == expected


def test_a_letter_that_is_null_is_that_of_no_label(file):
  texts = {"text": ["a", "b"], "label": ["A", None]}
  row = {"question": "q", "choices": texts, "answerKey": "A"}
  (example,) = choices.read_examples(file("a.jsonl", json.dumps(row)))
  assert (example.choices, example.label) == (("a", "b"), 0)
  row["answerKey"] = "C"
  with pytest.raises(DataError, match=r"label 'C'; .* choice, one of A\.$"):
    choices.read_examples(file("a.jsonl", json.dumps(row)))
