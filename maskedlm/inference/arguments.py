"""Checks the arguments of the public API (model.py)."""

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from maskedlm.core.errors import ConfigError


def text(value: str) -> str:
  """Returns the value if it is a string, and raises ConfigError otherwise."""
  if not isinstance(value, str):
    raise ConfigError(f"text is {value!r:.40}: expected a string.")
  return value


def _to_list(name: str, values: Any, *, of: str = "") -> list:
  """Returns the values as a list; raises ConfigError if they aren't one."""
  if isinstance(values, str):  # A sequence of characters, surely by mistake.
    raise ConfigError(
      f"{name} is one string, {values[:40]!r}: expected a list{of}; put it in "
      "[ ]."
    )
  remedy = ""
  # A dict or a data frame would yield its names.
  if isinstance(values, Mapping):
    remedy = "; put it in [ ], or give the list that it holds"
  elif hasattr(values, "columns"):
    remedy = ", such as list(df['text']) or df.to_dict('records')"
  elif isinstance(values, Set):
    remedy = ", as a set has no order"
  if remedy or not isinstance(values, Iterable):
    shown = f"a {type(values).__name__}" if remedy else f"{values!r:.40}"
    raise ConfigError(f"{name} is {shown}: expected a list{of}{remedy}.")
  return list(values)


def list_of(name: str, values: Sequence, kinds) -> list:
  """Returns the values as a list; raises ConfigError for a wrong type."""
  values = _to_list(name, values)
  for i, value in enumerate(values):
    if not isinstance(value, kinds):
      expected = "a string" if kinds is str else "a string or a dict"
      raise ConfigError(f"{name}[{i}] is {value!r:.40}: expected {expected}.")
  return values


def pairs(name: str, values: Sequence) -> list[tuple[str, str]]:
  """Returns pairs of texts as a list; raises ConfigError for a wrong type."""
  checked = []
  for i, value in enumerate(_to_list(name, values, of=" of pairs (A, B)")):
    is_pair = isinstance(value, Sequence) and not isinstance(value, str)
    texts = tuple(value) if is_pair else ()
    if [*map(type, texts)] != [str, str]:
      raise ConfigError(
        f"{name}[{i}] is {value!r:.40}: expected two strings, (A, B)."
      )
    checked.append(texts)
  return checked


def check_positive(name: str, value: int) -> None:
  """Raises ConfigError if the value is below 1."""
  if value < 1:
    raise ConfigError(f"{name}={value}: expected at least 1.")


def to_line(example: str | Mapping[str, Any]) -> str:
  """Returns a line of predict's input; a dict becomes JSON.

  Raises:
    ConfigError: the dict can't be written as JSON.
  """
  if isinstance(example, str):
    return example
  try:
    return json.dumps(dict(example), default=lambda x: x.tolist())  # NumPy.
  except (TypeError, ValueError, AttributeError, RecursionError):
    raise ConfigError(
      f"the example {example!r:.60} can't be written as JSON: expected "
      "strings, numbers and lists of them."
    ) from None
