"""Multiple-choice files: the layouts, the labels, and errors."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats import choices as files
from maskedlm.data.labelled.formats.choices import Example


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
  assert files.read_examples(path) == [
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
  assert files.read_examples(path) == [
    Example("A.", ("x", "y"), "He", where=f"{path}:2")
  ]


def test_codah(file):
  path = file(
    "train.tsv",
    'on\tHe said "no". He\twent.\tstayed.\t2\t1',
    "\t2 + 2 = ?\t4\t3\t1\t0",
  )
  assert files.read_examples(path) == [
    Example(
      context='He said "no". He',
      choices=("went.", "stayed.", "2"),
      label=1,
      category="on",
      where=f"{path}:1",
    ),
    Example("2 + 2 = ?", ("4", "3", "1"), label=0, where=f"{path}:2"),
  ]
  # Without labels, and with the columns' names.
  (read,) = files.read_examples(file("a.tsv", "i\tA\tb\tc\td\te"))
  assert (read.choices, read.label) == (("b", "c", "d", "e"), None)
  (read,) = files.read_examples(
    file("b.tsv", "category\tprompt\tending0\tending1\tlabel", "q\tA\tb\tc\t1")
  )
  assert (read.choices, read.label, read.category) == (("b", "c"), 1, "q")


@pytest.mark.parametrize(
  ("data", "answers"),
  [
    ("subtaskB_data_all.csv", "subtaskB_answers_all.csv"),
    ("subtaskB_dev_data.csv", "subtaskB_gold_answers.csv"),
  ],
)
def test_comve(file, data, answers):
  path = file(
    data,
    "id,FalseSent,OptionA,OptionB,OptionC",
    '7,"He ate, a shoe.",Too hard.,Black.,',
    "3,It flew.,a,b,c",
  )
  # Without a file of answers it is a test set.
  assert [e.label for e in files.read_examples(path)] == [None, None]
  file(answers, "3,C", "7,A")
  assert files.read_examples(path) == [
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
  assert files.read_examples(path) == [
    Example("c", ("a", "b"), label=1, where=f"{path}:2")
  ]
  lines = [
    {"context": "A.", "question": "Why?", "choices": ["x", "y"], "label": 1},
    {"context": "", "choices": ["x", "\ud800"], "label": 0.0, "id": 5},
    {"context": "B", "choices": ["x", "y"], "label": None},
  ]
  path = file("own.jsonl", *map(json.dumps, lines))
  assert files.read_examples(path) == [
    Example("A.", ("x", "y"), "Why?", 1, where=f"{path}:1"),
    Example("", ("x", "\ufffd"), label=0, key="5", where=f"{path}:2"),
    Example("B", ("x", "y"), where=f"{path}:3"),
  ]
  path = path.replace(".jsonl", ".parquet")
  pq.write_table(pa.Table.from_pylist(lines[:1]), path)
  assert files.read_examples(path) == [
    Example("A.", ("x", "y"), "Why?", 1, where=f"{path}:1")
  ]


def test_real_files(data_dir):
  folder = data_dir / "multiple_choice"
  for name, count, options in (
    ("codah/train.tsv", 1665, 4),
    ("codah/dev.tsv", 556, 4),
    ("comve_b/training/subtaskB_data_all.csv", 10_000, 3),
    ("comve_b/dev/subtaskB_dev_data.csv", 997, 3),
  ):
    read = files.read_examples(str(folder / name))
    assert len(read) == count
    assert files.check_num_choices(read) == options
    assert {e.label for e in read} == set(range(options))
    assert all(e.context for e in read)


@pytest.mark.parametrize(
  ("name", "lines", "expected"),
  [
    (
      "a.csv",
      ["ctx,a,b", "1,2,3"],
      r"a.csv:1: the columns are 'ctx', 'a', 'b'; expected sent1",
    ),
    ("a.csv", ["context,choice0,label", "a,b,0"], r"a.csv:1: the columns are"),
    ("a.tsv", ["ctx\ta\tb\t0"], r"a.tsv:1: the columns are 'ctx', 'a', 'b'"),
    ("a.csv", [",sent,ending0,ending1", "1,a,b,c"], r"a.csv:1: the columns"),
    (
      "a.csv",
      ["context,choice0,choice1,label", "a,b,c,0", "a,b,c,2"],
      r"a.csv:3: label '2'; expected the index .*, 0 to 1 or A to B",
    ),
    ("a.tsv", ["o\ta\tb\tc\t0", "o\ta\tb\tc\td\t0"], r"a.tsv:2: the row has 6"),
    ("a.jsonl", ['{"choices": ["a", "b"]}'], r"a.jsonl:1: no context, or no"),
    (
      "a.jsonl",
      ['{"context": "a", "choices": ["b"]}'],
      r"list of at least two choices",
    ),
    (
      "a.jsonl",
      ['{"context": "a", "choices": "bc"}'],
      r"a.jsonl:1: no context",
    ),
    ("a.jsonl", ['{"context": "a", "choices": [1, 2]}'], r"expected .*choices"),
    (
      "a.jsonl",
      ['{"context": "a", "choices": ["b", "c"], "label": -2}'],
      r"a.jsonl:1: label '-2'",
    ),
    ("a.csv", [], r"a.csv: the file is empty"),
    ("a.tsv", ["", ""], r"a.tsv: has no row"),
  ],
)
def test_errors_name_the_line(file, name, lines, expected):
  with pytest.raises(DataError, match=expected):
    files.read_examples(file(name, *lines))


def test_a_missing_answer(file):
  path = file(
    "subtaskB_dev_data.csv",
    "id,FalseSent,OptionA,OptionB",
    "1,a,b,c",
    "2,a,b,c",
  )
  file("subtaskB_gold_answers.csv", "1,A")
  with pytest.raises(
    DataError, match=r"data.csv:3: .* no answer for the id '2'"
  ):
    files.read_examples(path)


def test_a_varying_number_of_choices(file):
  path = file(
    "a.jsonl",
    '{"context": "a", "choices": ["b", "c"], "label": 0}',
    "",
    '{"context": "a", "choices": ["b", "c", "d"], "label": 0}',
  )
  read = files.read_examples(path)
  with pytest.raises(DataError, match=r"a.jsonl:3 has 3 choices; expected 2"):
    files.check_num_choices(read)
  assert files.check_num_choices(read[1:]) == 3
  with pytest.raises(DataError, match=r"a.jsonl:1 has 2 choices; expected 4"):
    files.check_num_choices(read, 4)


def test_lines_of_predict():
  assert files.parse_line("He sat.\ta b\tc") == Example("He sat.", ("a b", "c"))
  made = files.parse_line('{"context": "a", "choices": ["b", "c", "d"]}')
  assert made == Example("a", ("b", "c", "d"), where="input")
  for line in ("He sat.", "He sat.\ta"):
    with pytest.raises(DataError, match=r"input 'He sat.*two choices or more"):
      files.parse_line(line)
  with pytest.raises(DataError, match="input: not JSON"):
    files.parse_line('{"He sat.')
