"""Any number of labels: JSON lists, separators, a column for each."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats import label_lists
from maskedlm.data.labelled.formats.texts import FileLayout
from maskedlm.finetune.common.labels import Gold

LAYOUT = FileLayout(("text",), ("text_b",), alone=True, label=("labels",))


def read(path, text, *, separator=",", columns=()):
  path.write_text(text)
  return label_lists.read_examples(
    str(path), LAYOUT, separator=separator, columns=columns
  )


@pytest.mark.parametrize(
  ("value", "separator", "labels"),
  [
    ("b, a", ",", ("a", "b")),
    ("a,b,a,", ",", ("a", "b")),
    ("b  a", "", ("a", "b")),
    ('["b", "a"]', ",", ("a", "b")),
    (["x, y", "z's"], ",", ("x, y", "z's")),
    ([27], ",", ("27",)),
    ("[3, 10]", ",", ("10", "3")),
    ([0, 1], ",", ("0", "1")),  # The ids 0 and 1.
    ("(other)", ",", ("(other)",)),
    ("news (world), sport", ",", ("news (world)", "sport")),
    ("", ",", ()),
    ("[]", ",", ()),
    ([], ",", ()),
    *((mark, ",", None) for mark in (None, "-", "?", "nan", "NaN")),
  ],
)
def test_labels_of_a_field(value, separator, labels):
  assert label_lists.parse_labels(value, separator, "f:1") == labels


NAMES = st.text(
  st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=8
).filter(lambda x: x == x.strip() and x not in ("0", "1"))


@given(names=st.lists(NAMES, max_size=4, unique=True))
def test_labels_come_back(names):
  for value in (json.dumps(names), names):
    found = label_lists.parse_labels(value, ",", "f:1")
    assert found == tuple(sorted(names))


def test_files(tmp_path):
  text = "text\tlabels\na\tx, y\nb\t\nc\t[3, 10]\n"
  gold = [e.label for e in read(tmp_path / "a.tsv", text)]
  assert gold == [("x", "y"), (), ("10", "3")]
  rows = [
    {"text": "a", "text_b": "b", "labels": ["x,y", "z"]},
    {"text": "a", "labels": None},  # Not annotated.
  ]
  text = "".join(json.dumps(row) + "\n" for row in rows)
  found = read(tmp_path / "a.jsonl", text)
  assert [(e.text_b, e.label) for e in found] == [
    ("b", ("x,y", "z")),
    (None, None),
  ]
  with pytest.raises(DataError, match=r"a\.jsonl:2: label '' means no label"):
    Gold("label", "").of(found)


def test_a_column_for_each_label(tmp_path):
  """Kaggle's toxic comments; pandas writes 1.0 if a row is empty."""
  columns = ("toxic", "a threat, or not")
  text = 'id,text,toxic,other,"a threat, or not"\n1,a,1,9,0\n2,b,0.0,9, 0\n'
  text += "3,c,True,9,1.0\n4,d,-1,9,-1\n"
  gold = [e.label for e in read(tmp_path / "a.csv", text, columns=columns)]
  # The fourth is not annotated.
  assert gold == [("toxic",), (), ("a threat, or not", "toxic"), None]
  found = read(tmp_path / "b.jsonl", '{"text": "a"}\n', columns=columns)
  with pytest.raises(DataError, match=r"b\.jsonl:1: no 'toxic'; there are"):
    Gold("label", "").of(found)  # A test set.


def test_another_separator_is_noticed():
  fields = [(("a",), "f:2"), (("a;b",), "f:3")]
  with pytest.raises(DataError, match=r"f:3: .*--config.task.separator=\";\""):
    label_lists.check_separator(fields)
  label_lists.check_separator([*fields, (("c", "d"), "f:4")])


@pytest.mark.parametrize("other", ["#", " / ", "+", " & ", " ", ";"])
def test_a_label_of_other_labels_is_noticed(other, tmp_path):
  """Whatever other rows have; a name whose parts are no labels is one."""
  lines = ["text\tlabels", "a\tx, y z w", "b\ty", "c\tC++, R&B, and/or"]
  read(tmp_path / "a.tsv", "\n".join([*lines, ""]))
  lines.append(f"d\tx{other}y")
  with pytest.raises(DataError, match=r"a\.tsv:5: the label .*; set --config"):
    read(tmp_path / "a.tsv", "\n".join([*lines, ""]))


def test_line_breaks_are_between_labels(tmp_path):
  (made,) = read(tmp_path / "a.csv", 'text,labels\na,"x\ny, z"\n')
  assert made.label == ("x", "y", "z")
