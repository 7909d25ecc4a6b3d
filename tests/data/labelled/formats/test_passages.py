"""Files of queries and passages: columns, lists, SQuAD's, errors."""

import json

import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats import passages
from maskedlm.data.labelled.formats.passages import Columns, Example
from maskedlm.finetune.common import ranked_passages


def read(path, text, **columns):
  path.write_text(text, encoding="utf-8")
  return passages.read_examples(str(path), Columns(**columns))


def test_columns_and_their_usual_names(tmp_path):
  path = tmp_path / "pairs.tsv"
  assert read(path, "query\tpassage\nwho?\tJane did\n") == [
    Example("who?", ("Jane did",), True, f"{path}:2")
  ]
  # The names of the Hub's triplets; other columns are ignored.
  made = read(path, "id\tanchor\tpositive\tnegative\n7\ta b\tc\td e\n")
  assert made[0][:2] == ("a b", ("c", "d e"))
  made = read(
    path,
    "q\tquery\tgood\tnegative_1\tnegative_2\tnegatively\na\tb\tc\td\t\te\n",
    query=("q",),
    passage=("good",),
  )
  assert made[0][:2] == ("a", ("c", "d"))  # An empty one is skipped.


def test_several_right_passages(tmp_path):
  """Each makes an example with the same wrong ones (FlagEmbedding's files)."""
  path = tmp_path / "pairs.jsonl"
  lines = [
    {"query": "a", "pos": ["b", " ", "c"], "neg": ["d", ""]},
    {"query": "e", "positives": ["f"], "hard_negatives": ["g"], "negs": "[h"},
  ]
  assert read(path, "".join(json.dumps(line) + "\n" for line in lines)) == [
    Example("a", ("b", "d"), True, f"{path}:1"),
    Example("a", ("c", "d"), True, f"{path}:1"),
    Example("e", ("f", "g", "[h"), True, f"{path}:2"),
  ]
  # In a table, too, as JSON; other texts are texts.
  text = """query\tpos\tneg\na\t["b"]\t["c", "d'"]\na\t[e] f\t[1, 2\n"""
  made = read(tmp_path / "x.tsv", text)
  assert made[0].passages == ("b", "c", "d'")
  assert made[1].passages == ("[e] f", "[1, 2")


def test_passages_without_a_query(tmp_path):
  path = tmp_path / "all.tsv"
  made = read(path, "query\tpassage\n\tb\n \tc\na\td\n")
  assert [example[:2] for example in made] == [
    ("", ("b",)),
    ("", ("c",)),
    ("a", ("d",)),
  ]
  with pytest.raises(DataError, match=r"all\.tsv:2: the query is empty; expec"):
    ranked_passages.describe_labels(made)  # There is nothing to learn.


def test_questions_of_squad(tmp_path):
  answer = {"text": "Jane", "answer_start": 0}
  asked = [
    {"id": "1", "question": "who?", "answers": [answer]},
    {"id": "2", "question": "why?", "answers": [], "is_impossible": True},
  ]
  paragraph = {"context": "Jane wrote it.", "qas": asked}
  file = {"data": [{"title": "t", "paragraphs": [paragraph]}]}
  path = tmp_path / "squad.json"
  assert read(path, json.dumps(file)) == [
    Example("who?", ("Jane wrote it.",), True, f"{path}: question 1")
  ]


def test_parse_line():
  def parse(line, **names):
    return passages.parse_line(line, passages.Columns(**names))

  assert parse("who?\tJane.\tNobody.") == Example(
    "who?", ("Jane.", "Nobody."), is_gold=False
  )
  line = json.dumps({"query": "who?", "passages": ["Jane.", "a\tb"]})
  assert parse(line).passages == ("Jane.", "a\tb")
  # Half a surrogate pair becomes U+FFFD.
  assert parse("a\udc80\tb\ud800")[:2] == ("a\ufffd", ("b\ufffd",))
  line = r'{"query": "a", "passages": ["b\ud800"]}'
  assert parse(line).passages == ("b\ufffd",)
  for line in (
    "who?",
    "\ta",
    '{"query": "a"}',
    '{"query": "a", "passages": 3}',
  ):
    with pytest.raises(DataError, match="expected the query and at least one"):
      parse(line)
  line = '{"query": "x", "question": "a", "positive": "b"}'
  assert parse(line, query=("question",)).query == "a"
  assert parse(line)[:2] == ("x", ("b",))


# --- Labels of passages ---


def test_label_0_is_a_wrong_passage(tmp_path, capsys):
  """sentence-transformers' labeled-pair."""
  path = tmp_path / "pairs.tsv"
  text = (
    "anchor\tpassage\tlabel\na\tb\t1\na\tc\t0\nd\te\t1\nf\tg\t0\na\th\t1.0\n"
  )
  assert read(path, f"{text}i\tj\t-1\nk\tl\t\n") == [
    Example("a", ("b", "c"), True, f"{path}:2"),
    Example("d", ("e",), True, f"{path}:4"),
    Example("a", ("h", "c"), True, f"{path}:6"),
  ]
  told = capsys.readouterr().err
  assert "1 wrong passage, with label 0" in told
  assert "1 passage with label 0 left out" in told
  assert "2 passages without a label" in told


@pytest.mark.parametrize("name", ["score", "is_selected", "labels", "good"])
def test_another_column_of_labels_is_named(tmp_path, name):
  rows = [
    {"query": "a", "passage": "b", name: True},
    {"query": "a", "passage": "c", name: 0.0},
  ]
  text = "".join(json.dumps(row) + "\n" for row in rows)
  (example,) = read(tmp_path / "pairs.jsonl", text, label=name)
  assert example.passages == ("b", "c")
  # The user says that it means something else.
  found = read(tmp_path / "pairs.jsonl", text, label="none")
  assert [x.passages for x in found] == [("b",), ("c",)]


def test_a_list_of_labels(tmp_path):
  row = {"query": "a", "passages": ["b", "c", "d"], "labels": [0, 1, 0]}
  (example,) = read(tmp_path / "a.jsonl", json.dumps(row), label="labels")
  assert example.passages == ("c", "b", "d")
  text = """query,passages,label\na,"[""b"", ""c""]","[0, 1]"\n"""
  (example,) = read(tmp_path / "pairs.csv", text)
  assert example.passages == ("c", "b")


def test_questions_without_an_answer_in_rows(tmp_path, capsys):
  """SQuAD 2.0 as datasets writes it."""
  rows = [
    {"question": "a", "context": "b", "answers": {"text": ["b"]}},
    {"question": "c", "context": "d", "answers": {"text": []}},
    {"question": "e", "context": "f", "is_impossible": True},
    {"question": "g", "context": "h", "is_impossible": False},
  ]
  text = "".join(json.dumps(row) + "\n" for row in rows)
  examples = read(tmp_path / "squad.jsonl", text)
  assert [x[:2] for x in examples] == [("a", ("b",)), ("g", ("h",))]
  assert "2 passages without a label, or an answer" in capsys.readouterr().err


def test_scores_and_numbers_of_wrong_passages(tmp_path):
  """FlagEmbedding writes scores; they are no wrong passages."""
  row = {"query": "a", "pos": ["b"], "neg": ["c", "d"]}
  row |= {"pos_scores": [1], "neg_scores": [0.5, 0.25], "neg_ids": [3, 4]}
  (example,) = read(tmp_path / "a.jsonl", json.dumps(row))
  assert example.passages == ("b", "c", "d")


def test_scores_are_of_the_passages_that_are_kept(tmp_path):
  row = {"query": "a", "passage": "b", "negatives": ["", "c"]}
  path = tmp_path / "a.jsonl"
  (example,) = read(path, json.dumps({**row, "scores": [1, 0.2]}))
  assert example[1:2] + example[4:] == (("b", "c"), (1.0, 0.2))
  with pytest.raises(DataError, match=r"a\.jsonl:1: scores is \[1, 0.5, 0.2\]"):
    read(path, json.dumps({**row, "scores": [1, 0.5, 0.2]}))
