"""Which choice a label means."""

import json

import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats import choices as files
from maskedlm.data.labelled.formats.choice_labels import Label, find_indices

CHOICES = ("one", "two", "three")


def indices(*texts, choices=CHOICES, names=(), **options):
  labels = [Label(x, choices, names, f"f:{i}") for i, x in enumerate(texts, 1)]
  return find_indices(labels, **options)


@pytest.mark.parametrize(
  ("texts", "expected"),
  [
    (("0", "2", "1.0"), [0, 2, 1]),
    (("A", "c", "B"), [0, 2, 1]),
    (("two", "one"), [1, 0]),
    (("", "-", "-1", "?", "2"), [None, None, None, None, 2]),
  ],
)
def test_labels(texts, expected):
  assert indices(*texts) == expected


def test_columns_from_1():
  names = ("choice1", "choice2", "choice3")
  assert indices("1", "3", names=names) == [0, 2]
  assert indices("0", "2", names=names) == [0, 2]  # As in COPA.
  assert indices("choice1", "choice3", names=names) == [0, 2]
  assert indices("1", "2", names=names, first_label="1") == [0, 1]
  assert indices("1", "2", names=names, first_label="0") == [1, 2]
  with pytest.raises(DataError, match=r"f:1: label '1' .*first_label=1 or 0"):
    indices("1", "2", names=names)
  assert indices("1", "2", names=("ending0", "ending1", "ending2")) == [1, 2]


def test_numbers_beside_letters():
  """ARC has both."""
  with pytest.raises(DataError, match=r"f:2: label '1', but 'A' at f:1"):
    indices("A", "1", "3", "B")
  assert indices("A", "1", "3", "B", first_label="1") == [0, 0, 2, 1]


def test_texts_that_look_like_indices():
  numbers = ("2", "3", "1")
  assert indices("0", "2", choices=numbers) == [0, 2]
  with pytest.raises(DataError, match=r"f:1: .*index or the text of a choice"):
    indices("1", "2", choices=numbers)
  assert indices("1", "2", choices=numbers, first_label="1") == [0, 1]


@pytest.mark.parametrize("text", ["3", "D", "four", "-2", "1.5"])
def test_no_choice(text):
  with pytest.raises(DataError, match=f"f:2: label '{text}'; expected the ind"):
    indices("0" if text != "D" else "A", text)


def test_empty_choices(tmp_path):
  path = tmp_path / "a.csv"
  path.write_text("context,choice0,choice1,choice2,label\nc,a,b,,1\nd,e,f,,0\n")
  assert [x.choices for x in files.read_examples(str(path))] == [
    ("a", "b"),
    ("e", "f"),
  ]
  for row, message in (
    ("c,a,,b,0", "a.csv:2: a choice is empty"),
    ("c,a,,,0", "a.csv:2: a choice is empty"),
    ("c,a,b,,2", "a.csv:2: label '2'; expected the index"),
  ):
    path.write_text(f"context,choice0,choice1,choice2,label\n{row}\n")
    with pytest.raises(DataError, match=message):
      files.read_examples(str(path))
  path = tmp_path / "a.jsonl"
  row = {"context": "c", "choices": ["a", "b", None], "label": 1}
  path.write_text(json.dumps(row))
  assert files.read_examples(str(path))[0].choices == ("a", "b")
  path.write_text(json.dumps({**row, "label": True}))
  with pytest.raises(DataError, match=r"a.jsonl:1: label true; expected"):
    files.read_examples(str(path))
