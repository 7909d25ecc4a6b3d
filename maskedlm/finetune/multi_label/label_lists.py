"""Reads a field that holds any number of labels, as programs write them.

  written by                   the field
  JSON, Parquet                ["a", "b"], [3, 10]; {"a": 1, "b": 0}
  pandas, from lists           ['a', 'b'], ('a', 'b'), {'a', 'b'}, set()
  numpy, from arrays           ['a' 'b'], [3 10], array(['a', 'b'], dtype=...)
  by hand                      a, b (task.separator)
  no label                     an empty field or list
  not annotated                null, NaN, -, ?: left out, and counted

Refused: a list of 1 and 0, one for each label (simpletransformers' multi-hot
[1, 0, 1], (1 0 1) or 1 0 1), which is no list of names; nested lists; and a
field such as a;b where the separator is a comma.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from maskedlm.core.errors import DataError
from maskedlm.core.parse_json import parse_json
from maskedlm.data.labelled.labels import NO_LABEL
from maskedlm.data.labelled.objects import as_text

IS_TRUE = {"1": True, "1.0": True, "true": True}
IS_TRUE |= {"0": False, "0.0": False, "false": False}
_CALL = re.compile(
  r"(?:(?:np\.|numpy\.)?array|frozenset|set|list|tuple)\((.*?)"
  r"(?:,\s*dtype=[\w.<>'\"]+)?\)",
  re.DOTALL,
)
_BRACKETS = ("[]", "()", "{}")
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_NUMBER = r"[-+]?\d+(?:\.\d*)?|True|False|None|nan"
_STRING = rf"(?:np\.str_\((?:{_QUOTED})\)|[bu]?(?:{_QUOTED}))"
# Items between commas, or, as numpy has them, whitespace or nothing.
_ITEM = re.compile(rf"\s*({_STRING}|{_NUMBER})(?=[\s,'\"]|\Z)\s*,?")
_OTHER_SEPARATORS = re.compile(r"[;|]")


def parse_labels(
  value: Any, separator: str, where: str
) -> tuple[str, ...] | None:
  """Returns the labels in a field, sorted, each once; None for no gold.

  Args:
    value: a str, or a list or object of JSON.
    separator: between the labels in a str that is no list; "" for whitespace.
    where: FILE:LINE, for errors.

  Raises:
    DataError: the value is not a list of labels.
  """
  if value is None or value in NO_LABEL[1:]:
    return None
  found = value
  if isinstance(value, str):
    found = _parse_list(value.strip(), where)
  if found is None:
    found = value.split(separator or None)
  if isinstance(found, Mapping):
    return _of_object(found, where)
  found = found if isinstance(found, list) else [found]
  if any(x is None or isinstance(x, list | dict) for x in found):
    raise _error(value, where)
  names = [as_text(x).strip() for x in found]
  _check_names(names, value, where)
  return tuple(sorted(set(names) - {""}))


def _check_names(names: Sequence[str], value: Any, where: str) -> None:
  """Raises DataError for a multi-hot list: 1 and 0 in an order, or repeated."""
  words = names
  if len(names) == 1:  # Between spaces, where the separator is a comma.
    words = names[0].split()
  truths = [IS_TRUE.get(name.lower()) for name in words]
  if len(words) < 2 or None in truths:
    return
  if words is not names or truths != [False, True]:  # That may be 0 and 1.
    raise DataError(
      f"{where}: the labels {as_text(value)!r:.60} are a list of 1 and 0, not "
      "of names; write the names, or give each label a column (task.columns)."
    )


def _of_object(value: Mapping[str, Any], where: str) -> tuple[str, ...]:
  truths = {n: IS_TRUE.get(as_text(x).lower()) for n, x in value.items()}
  if None in truths.values():
    raise _error(value, where)
  return tuple(sorted(name for name, is_it in truths.items() if is_it))


def _parse_list(text: str, where: str) -> list | dict | None:
  """Returns the list that a text spells; None if it is not meant as one.

  Raises:
    DataError: it is in square brackets, begins as a list of strings or is
      another program's array, but is no list.
  """
  try:
    found = parse_json(text)
  except ValueError:
    found = None
  if isinstance(found, list | dict):
    return found
  inner = text
  while match := _CALL.fullmatch(inner):
    inner = match[1].strip()
  if inner[:1] + inner[-1:] in _BRACKETS and len(inner) > 1:
    items = _parse_items(inner[1:-1])
    if items is not None:
      return items
  elif inner != text and not inner:  # set()
    return []
  if text[:1] == "[" or re.match(
    r"[({]\s*[bu]?['\"]|[A-Za-z_.]+\([\[({].*\)$", text, re.DOTALL
  ):
    raise _error(text, where)
  return None


def _parse_items(text: str) -> list | None:
  """Returns strings and numbers between commas or spaces; None if others."""
  items, place = [], 0
  while text[place:].strip():
    match = _ITEM.match(text, place)
    if not match:
      return None
    items.append(_literal(match[1]))
    place = match.end()
  return items


def _literal(text: str) -> str | None:
  if quoted := re.search(_QUOTED, text):
    return ast.literal_eval(quoted[0])
  return None if text in ("None", "nan") else text.removesuffix(".")


def _error(value: Any, where: str) -> DataError:
  return DataError(
    f"{where}: the labels {as_text(value)!r:.60}; expected a list of labels "
    'such as ["a", "b"], or labels with task.separator between them.'
  )


def check_separator(texts: Sequence[tuple[str, str]], separator: str) -> None:
  """Checks that a file's labels are not between other separators.

  Args:
    texts: (field, FILE:LINE) of each field that is no list.
    separator: task.separator.

  Raises:
    DataError: some have ; or | within, and none has the separator.
  """
  if any(separator in text if separator else " " in text for text, _ in texts):
    return
  for text, where in texts:
    if other := _OTHER_SEPARATORS.search(text):
      raise DataError(
        f"{where}: the labels {text!r:.60} have {other[0]!r} within; set "
        f'--config.task.separator="{other[0]}" if it is between labels, or '
        'write ["..."] if it is part of a name.'
      )
