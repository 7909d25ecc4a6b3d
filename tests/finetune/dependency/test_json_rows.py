"""Lists of words, heads and labels in JSON and Parquet, and bad ones."""

import json

import pytest

from maskedlm.core.errors import DataError
from maskedlm.finetune.dependency import dependency


def write(file, *rows):
  return file("".join(json.dumps(x) + "\n" for x in rows), "a.jsonl")


def test_by_hand(file, capsys):
  hub = {
    "tokens": ["don't", "do", "n't"],
    "head": ["None", "0", "1"],
    "deprel": ["_", "root", "advmod"],
  }
  ours = {"tokens": ["He", "left"], "heads": [2, 0], "labels": ["a", "root"]}
  path = write(file, hub, {"words": ["x"]}, {"tokens": []}, ours)
  first, second, third = dependency.read_examples(path)
  assert first.words == ("do", "n't") and first.heads == (0, 1)
  assert first.labels == ("root", "advmod") and first.where == f"{path}:1"
  assert (second.words, second.heads) == (("x",), None)
  assert (third.heads, third.lines) == ((2, 0), (4, 4))
  said = capsys.readouterr().err
  assert "1 word without a head beside others" in said
  assert "without words, left out: 1" in said


@pytest.mark.parametrize(
  ("row", "told"),
  [
    ({"text": "a"}, "no 'tokens'; there are 'text'"),
    ({"tokens": "a b"}, "'tokens' is 'a b'"),
    ({"tokens": ["a", ""]}, "the word ''"),
    ({"tokens": ["a"], "head": [0, 1], "deprel": ["x"]}, "1 word, 2 heads"),
    ({"tokens": ["a", "b"], "head": [0, 5], "deprel": ["x", "y"]}, "HEAD '5'"),
    ({"tokens": ["a", "b"], "head": [0, 0], "deprel": ["x", "y"]}, "word 2, b"),
    ({"tokens": ["a", "b"], "head": [0, 1]}, "DEPREL '_'"),
    ({"tokens": ["a", "b"], "head": [0, 1.5], "deprel": ["x", "y"]}, "'1.5'"),
  ],
)
def test_bad_rows_are_one_line(file, row, told):
  path = write(file, {"tokens": ["a"]}, row)
  with pytest.raises(DataError) as error:
    dependency.read_examples(path)
  message = str(error.value)
  assert message.startswith(f"{path}:2: ") and told in message
  assert "\n" not in message


def test_no_words(file):
  with pytest.raises(DataError, match="no words"):
    dependency.read_examples(write(file, {"tokens": []}))
