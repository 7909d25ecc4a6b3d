"""Reads JSON text; whatever it holds, errors are ValueErrors.

Python's reader raises a RecursionError where lists and objects are nested about
a thousand deep, and a value nested nearly as deep breaks the code that walks
through it.
"""

import json
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 100  # Lists and objects within one another.


def parse_json(
  text: str | bytes,
  *,
  strict: bool = True,
  object_pairs_hook: Callable[[list], Any] | None = None,
) -> Any:
  """Returns the value of a JSON text.

  Args:
    text: the text; bytes are UTF-8, -16 or -32.
    strict, object_pairs_hook: as for json.loads.

  Raises:
    ValueError: it is not JSON, or is nested more than MAX_DEPTH deep; mostly
      a json.JSONDecodeError, which has the place.
  """
  if isinstance(text, bytes):
    text = text.decode(json.detect_encoding(text), "surrogatepass")
  decoder = json.JSONDecoder(strict=strict, object_pairs_hook=object_pairs_hook)
  try:
    value = decoder.decode(text)
  except RecursionError:
    raise _too_deep(text) from None
  return _check_depth(value, text)


def _check_depth(value: Any, text: str):
  # Counting is fast: few texts have so many brackets at all.
  if text.count("[") + text.count("{") > MAX_DEPTH:
    level = [value]
    for _ in range(MAX_DEPTH):
      level = [
        inner
        for outer in level
        if isinstance(outer, list | dict)
        for inner in (outer.values() if isinstance(outer, dict) else outer)
        if isinstance(inner, list | dict)
      ]
    if level:
      raise _too_deep(text)
  return value


def _too_deep(text: str) -> json.JSONDecodeError:
  return json.JSONDecodeError(f"nested more than {MAX_DEPTH} deep", text, 0)
