"""JSON of any depth: a ValueError, which its readers report in one line."""

import json
import re

import pytest

from helpers import repository
from maskedlm.core.parse_json import MAX_DEPTH, parse_json

FORMS = {"lists": ("[", "]", "1"), "objects": ('{"a":', "}", "1")}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 990, 1_100, 100_000])
def test_deep_nesting_is_a_value_error(form, depth):
  begin, end, inner = FORMS[form]
  text = begin * depth + inner + end * depth
  with pytest.raises(json.JSONDecodeError, match=f"{MAX_DEPTH} deep"):
    parse_json(text)


@pytest.mark.parametrize("form", FORMS)
def test_the_greatest_depth_is_read(form):
  begin, end, inner = FORMS[form]
  text = begin * MAX_DEPTH + inner + end * MAX_DEPTH
  assert parse_json(text) == json.loads(text)


def test_many_brackets_side_by_side_are_not_deep():
  rows = [["[{" * 300, {"a": [1]}] for _ in range(257)]
  assert parse_json(json.dumps(rows)) == rows


def test_other_texts_are_read_as_json_does():
  assert parse_json('{"é": [1.5, null, true]}'.encode()) == {
    "é": [1.5, None, True]
  }
  assert parse_json('"a\tb"', strict=False) == "a\tb"
  for wrong in ("", "{", "[1,]", b"\xff\xfe", "9" * 5_000):
    with pytest.raises(ValueError):
      parse_json(wrong)


def test_nothing_else_reads_json():
  """A reader of its own would raise a RecursionError."""
  for path in (repository.ROOT / "maskedlm").rglob("*.py"):
    if path.name != "parse_json.py":
      found = re.search(r"json\.loads?\(|JSONDecoder\(", path.read_text())
      assert not found, path
