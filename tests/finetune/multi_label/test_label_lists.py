"""Fields that hold several labels, as programs write them."""

import numpy as np
import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats import label_lists


def parse(value, separator=","):
  return label_lists.parse_labels(value, separator, "f:1")


@pytest.mark.parametrize(
  "value",
  [
    *("b, a", "a,b,", "['b', 'a']", "('a', 'b')", "{'a', 'b'}"),
    *(
      "['a' 'b']",
      "['b'\n 'a']",
      "[\"a\" 'b']",
      "array(['a', 'b'], dtype='<U1')",
    ),
    *("frozenset({'a', 'b'})", '["a", "b"]', "[np.str_('a'), np.str_('b')]"),
    *(["a", "b"], {"a": 1, "b": True, "c": 0, "d": "0"}),
    str(np.array(["a", "b"])),
    repr(np.array(["a", "b"])),
    repr(np.array(["a", "b"], object)),
  ],
)
def test_two_labels(value):
  assert parse(value) == ("a", "b")


@pytest.mark.parametrize(
  "value", ["", "[]", "()", "{}", "set()", [], {}, "[ ]"]
)
def test_no_label(value):
  assert parse(value) == ()


@pytest.mark.parametrize("value", [None, "-", "?", "nan", "NaN"])
def test_no_gold_label(value):
  assert parse(value) is None


@pytest.mark.parametrize(
  ("value", "labels"),
  [
    ([27], ("27",)),
    ("[3 10]", ("10", "3")),
    ("[1]", ("1",)),
    ([0, 1], ("0", "1")),  # The ids 0 and 1.
    ("(other)", ("(other)",)),
    ("news (world), sport", ("news (world)", "sport")),
    ("['x, y', \"z's\"]", ("x, y", "z's")),
  ],
)
def test_names_and_ids(value, labels):
  assert parse(value) == labels


@pytest.mark.parametrize(
  "value",
  [
    *("[1, 0, 1]", "(0, 0, 0)", "[1. 0. 1.]", "1 0 1", "0 1", "1,0,1"),
    *([1.0, 0.0, 1.0], [True, False], "[True, False, True]", "(1 0 0)", [0, 0]),
  ],
)
def test_a_list_of_1_and_0_is_refused(value):
  with pytest.raises(DataError, match=r"f:1: .* a list of 1 and 0.*columns"):
    parse(value)


@pytest.mark.parametrize(
  "value",
  [
    *([["a"]], ["a", None], {"a": "much"}, "['a', None]", "[a, b]"),
    *("tensor([1, 0, 1])", "Index(['a'], dtype='object')"),
  ],
)
def test_no_lists_of_labels(value):
  with pytest.raises(DataError, match=r"f:1: the labels .* expected a list"):
    parse(value)


def test_another_separator_is_noticed():
  fields = [("a", "f:2"), ("a;b", "f:3")]
  with pytest.raises(DataError, match=r"f:3: .*--config.task.separator=\";\""):
    label_lists.check_separator(fields, ",")
  label_lists.check_separator([*fields, ("c, d", "f:4")], ",")
  label_lists.check_separator(fields, ";")
