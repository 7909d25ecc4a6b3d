"""A question on a text, with its gold answers; checks of fields of files."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.core.parse_json import parse_json

GUIDE = "docs/guides/finetune/question-answering.md"
ABSENT = -1


class GoldAnswer(NamedTuple):
  """An answer: context[start : start + len(text)] == text."""

  text: str
  # None: not given; squad.read_questions finds it. ABSENT: it isn't in the
  # text, and counts for the metrics only.
  start: int | None


class Example(NamedTuple):
  """A question on a text; examples of one paragraph share its string."""

  question: str
  context: str
  id: str = ""
  # The annotators' answers; () = the question has none, None = unknown. Those
  # that are ABSENT are the last.
  answers: tuple[GoldAnswer, ...] | None = None
  where: str = ""  # FILE: question ID, or FILE:LINE.


def parse(text: str, path: str, line: int) -> Any:
  """Returns the JSON value of a text that begins at a line of a file.

  Raises:
    DataError: it is not JSON.
  """
  try:
    return parse_json(text)
  except json.JSONDecodeError as error:
    number = line + error.lineno - 1
    raise DataError(
      f"{path}:{number}: not JSON ({error.msg} at column {error.colno}); "
      f"expected questions as SQuAD has them: is the file complete? ({GUIDE})"
    ) from None


def get_field(value: Any, name: str, kind: type, where: str) -> Any:
  """Returns value[name]; raises DataError unless it is of type `kind`."""
  names = {str: "a string", list: "a list", dict: "an object"}
  if not isinstance(value, Mapping):
    raise DataError(
      f"{where}: a JSON {type(value).__name__}; expected an object with "
      f"{name!r} ({GUIDE})."
    )
  if name not in value:
    raise DataError(
      f"{where}: no {name!r}; expected {names[kind]} in addition to "
      f"{', '.join(map(repr, value)) or 'nothing'} ({GUIDE})."
    )
  if type(value[name]) is not kind:
    raise DataError(
      f"{where}: {name!r} is {str(value[name])[:40]!r}; expected {names[kind]}."
    )
  return value[name]
