"""A new format of objects is a table of fields, read and refused by one reader.

The format here, of answers about a sentence, is made up for the test.
"""

import json
from typing import NamedTuple

import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import fields, read


class Example(NamedTuple):
  """A sentence, its words' weights and whether it is true."""

  words: tuple[str, ...]
  weights: tuple[int, ...] | None
  is_true: bool
  id: str | None
  where: str


FORM = fields.Format(
  {
    "words": fields.texts("tokens", "words"),
    "weights": fields.items(
      "weights",
      of=fields.whole_number_of,
      expected="a list of whole numbers",
      optional=True,
      same_length="words",
    ),
    "is_true": fields.truth("is_true"),
    "id": fields.key("id", optional=True),
  },
  such_as='{"tokens": ["a"], "is_true": true}',
  filled="words",
  documents=True,
)


def read_file(source):
  rows = read.read_objects(source, FORM)
  return [Example(**row.values, where=row.where) for row in rows]


def write(examples):
  kept = (x._asdict() for x in examples)
  return "".join(f"{json.dumps(x)}\n" for x in kept)


def test_what_is_written_is_read(file):
  path = file("", "f.jsonl")
  made = [
    Example(("a", "b"), (3, -4), True, "x", f"{path}:1"),
    Example(("c",), None, False, None, f"{path}:2"),
  ]
  assert read_file(file(write(made), "f.jsonl")) == made


def test_names_nulls_empty_rows_and_documents(file, capsys):
  rows = [
    {"tokens": None, "words": ["a"], "is_true": True, "id": 7, "other": 1},
    {"tokens": [], "is_true": False},
    {"sentences": [{"words": [w], "is_true": w == "b"} for w in "bc"]},
  ]
  path = file("".join(f"{json.dumps(x)}\n" for x in rows), "f.jsonl")
  found = read_file(path)
  assert [x.words for x in found] == [("a",), ("b",), ("c",)]
  assert (found[0].id, found[2].where) == ("7", f"{path}:3")
  assert [x.is_true for x in found] == [True, True, False]
  assert f"{path}: 1 row without words, left out" in capsys.readouterr().err


GOOD = {"tokens": ["a", "b"], "is_true": True}


@pytest.mark.parametrize(
  ("change", "part"),
  [
    ({"tokens": None}, "no 'tokens' or 'words'; there are 'tokens', 'is_true'"),
    ({"tokens": "a"}, "'tokens' is 'a'; expected a list of texts, none empty"),
    ({"tokens": ["a", 3]}, "(it has 3); expected a list of texts, none empty"),
    ({"tokens": ["a", None]}, "(it has None); expected a list of texts"),
    ({"tokens": ["a", ""]}, "(it has ''); expected a list of texts"),
    ({"weights": [1]}, "2 words, but 1 weights; expected as many of each"),
    ({"weights": [1, True]}, "expected a list of whole numbers, as in"),
    ({"weights": [1, 2.5]}, "expected a list of whole numbers, as in"),
    ({"weights": 3}, "'weights' is '3'; expected a list of whole numbers"),
    ({"is_true": 1}, "'is_true' is '1'; expected true or false"),
    ({"is_true": "yes"}, "'is_true' is 'yes'; expected true or false"),
    ({"id": ["x"]}, "'id' is \"['x']\"; expected a text or a whole number"),
    ({"id": 1.5}, "'id' is '1.5'; expected a text or a whole number"),
  ],
)
def test_refusals_name_the_field_and_show_an_object(file, change, part):
  path = file(json.dumps(GOOD | change), "f.jsonl")
  with pytest.raises(DataError) as error:
    read_file(path)
  message = str(error.value)
  assert message.startswith(f"{path}:1: ") and part in message
  assert FORM.such_as in message and "\n" not in message


def test_what_a_file_is_is_decided_by_its_name_and_content(file):
  for content, name, expected in (
    ('{"a": 1}\n', "f.conll", True),
    ("a O\n", "f.conll", False),
    ("{ O\n", "f.conll", False),
    ("a O\n", "f.json", True),
    ("PAR1", "f.txt", True),
  ):
    assert read.has_objects(file(content, name)) == expected
  assert read.has_objects("tfds:name")
