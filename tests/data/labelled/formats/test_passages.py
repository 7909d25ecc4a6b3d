"""Files of queries and passages: columns, lists, SQuAD's, errors."""

import json

import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats.passages import (
  PASSAGE_COLUMNS,
  QUERY_COLUMNS,
  Example,
)
from maskedlm.finetune.retrieval import files, retrieval


def read(path, text, query=QUERY_COLUMNS, passage=PASSAGE_COLUMNS):
  path.write_text(text, encoding="utf-8")
  return files.read_examples(str(path), query=query, passage=passage)


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


def test_lists_of_wrong_passages(tmp_path):
  lines = [
    {"query": "a", "passage": "b", "negatives": ["c", "[d] e"]},
    {"query": "a", "passage": "b", "negatives": []},
    {"query": "a", "passage": "b", "negatives": None, "negative": "[f] g"},
  ]
  text = "".join(json.dumps(line) + "\n" for line in lines)
  made = read(tmp_path / "pairs.jsonl", text)
  assert [example.passages for example in made] == [
    ("b", "c", "[d] e"),
    ("b",),
    ("b", "[f] g"),
  ]


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
  # In a table, too, as JSON or as pandas writes it; other texts are texts.
  text = """query\tpos\tneg\na\t["b"]\t['c', "d'"]\na\t[e] f\t[1, 2]\n"""
  made = read(tmp_path / "x.tsv", text)
  assert made[0].passages == ("b", "c", "d'")
  assert made[1].passages == ("[e] f", "[1, 2]")


@pytest.mark.parametrize(
  ("fields", "message"),
  [
    ({"pos": []}, "pairs.jsonl:1: the passage is empty; expected a text"),
    (
      {"pos": [{"text": "b"}]},
      r"1: '\[{\"text\": \"b\"}\]'; expected a text, or",
    ),
    (
      {"pos": "b", "neg": [7]},
      r"pairs.jsonl:1: '\[7\]'; expected a text, or a",
    ),
    ({"pos": ["b", None]}, r"null\]'; expected a text, or a list of texts"),
  ],
)
def test_lists_that_do_not_contain_texts(fields, message, tmp_path):
  with pytest.raises(DataError, match=message):
    read(tmp_path / "pairs.jsonl", json.dumps({"query": "a", **fields}) + "\n")


def test_files_without_a_header(tmp_path):
  path = tmp_path / "triples.tsv"
  path.write_text("who?\tJane did\tIt rained\n")
  options = retrieval.Options(header=("query", "passage", "negative"))
  assert retrieval.read_examples(str(path), options) == [
    Example("who?", ("Jane did", "It rained"), True, f"{path}:1")
  ]


def test_passages_without_a_query(tmp_path):
  path = tmp_path / "all.tsv"
  made = read(path, "query\tpassage\n\tb\n \tc\na\td\n")
  assert [example[:2] for example in made] == [
    ("", ("b",)),
    ("", ("c",)),
    ("a", ("d",)),
  ]
  with pytest.raises(DataError, match=r"all\.tsv:2: the query is empty; expec"):
    retrieval.describe_labels(made)  # There is nothing to learn.


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


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("text\tpassage\na\tb\n", r"pairs.tsv:2: no column 'query' or 'question'"),
    ("query\ttext\na\tb\n", r"pairs.tsv:2: no column 'passage' or 'passages'"),
    ("query\tpassage\na\t \n", "pairs.tsv:2: the passage is empty; expected"),
    ("query\tpassage\na\n", r"pairs.tsv:2: the row has 1 column; expected 2"),
  ],
)
def test_bad_files(tmp_path, text, message):
  with pytest.raises(DataError, match=message):
    read(tmp_path / "pairs.tsv", text)


def test_parse_line():
  assert files.parse_line("who?\tJane.\tNobody.") == Example(
    "who?", ("Jane.", "Nobody."), is_gold=False
  )
  line = json.dumps({"query": "who?", "passages": ["Jane.", "a\tb"]})
  assert files.parse_line(line).passages == ("Jane.", "a\tb")
  # Half a surrogate pair becomes U+FFFD.
  assert files.parse_line("a\udc80\tb\ud800")[:2] == ("a\ufffd", ("b\ufffd",))
  line = r'{"query": "a", "passages": ["b\ud800"]}'
  assert files.parse_line(line).passages == ("b\ufffd",)
  for line in (
    "who?",
    "\ta",
    '{"query": "a"}',
    '{"query": "a", "passages": 3}',
  ):
    with pytest.raises(DataError, match="expected the query and at least one"):
      files.parse_line(line)


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


@pytest.mark.parametrize("name", ["label", "score", "is_selected", "relevance"])
def test_other_columns_of_labels(tmp_path, name):
  rows = [
    {"query": "a", "passage": "b", name: True},
    {"query": "a", "passage": "c", name: 0.0},
  ]
  text = "".join(json.dumps(row) + "\n" for row in rows)
  (example,) = read(tmp_path / "pairs.jsonl", text)
  assert example.passages == ("b", "c")


def test_a_list_of_labels(tmp_path):
  row = {"query": "a", "passages": ["b", "c", "d"], "labels": [0, 1, 0]}
  path = tmp_path / "pairs.jsonl"
  (example,) = read(path, json.dumps(row))
  assert example.passages == ("c", "b", "d")
  text = """query,passages,labels\na,"['b', 'c']","[0, 1]"\n"""
  (example,) = read(tmp_path / "pairs.csv", text)
  assert example.passages == ("c", "b")
  with pytest.raises(DataError, match=r"pairs.jsonl:1: labels has 2 values fo"):
    read(path, json.dumps({**row, "labels": [0, 1]}))


@pytest.mark.parametrize("value", [0.3, 2, "entailment", [0.9, 0.1]])
def test_grades_are_refused(tmp_path, value):
  row = {"query": "a", "passage": "b", "score": value}
  path = tmp_path / "pairs.jsonl"
  with pytest.raises(DataError, match=r"pairs.jsonl:1: score"):
    read(path, json.dumps(row))
  options = retrieval.Options(label="none")
  (example,) = retrieval.read_examples(str(path), options)
  assert example.passages == ("b",)


def test_no_right_passage(tmp_path):
  with pytest.raises(DataError, match=r"pairs.csv: no passage has label 1"):
    read(tmp_path / "pairs.csv", "query,passage,label\na,b,0\n")
  with pytest.raises(DataError, match=r"pairs.csv:2: .* label 0 for the same"):
    read(tmp_path / "pairs.csv", "query,passage,label\na,b,1\na,b,0\n")


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


def test_a_column_of_1_and_0_is_used_or_refused(tmp_path):
  path = tmp_path / "pairs.csv"
  text = "query,passage,{0}\na,b,1\na,c,0\nd,e,1\n"
  with pytest.raises(DataError, match=r"'good' of 1 and 0.*task.label=good"):
    read(path, text.format("good"))
  for name in ("is_duplicate", "target"):
    assert read(path, text.format(name))[0].passages == ("b", "c")
  # The user says that it means something else; numbers of rows.
  path.write_text(text.format("good"))
  columns = {"query": QUERY_COLUMNS, "passage": PASSAGE_COLUMNS}
  assert len(files.read_examples(str(path), label=(), **columns)) == 3
  assert len(read(path, text.format("doc_id"))) == 3


def test_wrong_passages_in_a_column_that_is_not_read(tmp_path):
  row = {"query": "a", "passage": "b", "negative_ctxs": [{"text": "c"}]}
  with pytest.raises(DataError, match="'negative_ctxs' is not read"):
    read(tmp_path / "a.jsonl", json.dumps(row))


def test_scores_and_numbers_of_wrong_passages(tmp_path):
  """FlagEmbedding writes scores; they are no wrong passages."""
  row = {"query": "a", "pos": ["b"], "neg": ["c", "d"]}
  row |= {"pos_scores": [1], "neg_scores": [0.5, 0.25], "neg_ids": [3, 4]}
  (example,) = read(tmp_path / "a.jsonl", json.dumps(row))
  assert example.passages == ("b", "c", "d")
