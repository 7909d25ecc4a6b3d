"""Columns of spans in brackets, as the CoNLL tasks of 2005 and 2012 have them.

  (A1*  *  *)  (V*)  *      A1 of the first three words, V of the fourth

The spans of a column don't overlap.
"""

import re
from collections.abc import Iterable

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.bio import Entity
from maskedlm.data.labelled.columns import Block

_FIELD = re.compile(r"((?:\([^()*\s]+)*)\*((?:[^()*\s]*\))*)")


def read_spans(path: str, block: Block, column: int) -> list[Entity]:
  """Returns the spans of a column of a sentence.

  Raises:
    DataError: a field is no bracket or *; a bracket is not closed or not
      opened, or is within another.
  """
  spans: list[Entity] = []
  label, begin = "", 0
  for i, row in enumerate(block.rows):
    field = row[column]
    where = f"{path}:{block.numbers[i]}: {field!r} in column {column + 1}"
    match = _FIELD.fullmatch(field)
    if not match:
      raise DataError(f"{where}; expected *, (LABEL*, *) or (LABEL*).")
    opened = match[1].split("(")[1:]
    closed = match[2].split(")")[:-1]
    if len(opened) + bool(label) > 1:
      raise DataError(
        f"{where} opens a bracket within {label or opened[0]}; the spans of a "
        "column must not overlap."
      )
    if opened:
      label, begin = opened[0], i
    if closed:
      if len(closed) > 1 or closed[0] not in ("", label) or not label:
        raise DataError(
          f"{where} closes a bracket that is not open; expected (LABEL* before."
        )
      spans.append(Entity(label, begin, i + 1))
      label = ""
  if label:
    raise DataError(
      f"{path}:{block.numbers[begin]}: ({label}* in column {column + 1} is not "
      "closed in the sentence; expected *) at its last word."
    )
  return spans


def span_column(spans: Iterable[Entity], count: int) -> list[str]:
  """Returns the column of `count` words with these spans."""
  column = ["*"] * count
  for label, begin, end in spans:
    column[begin] = f"({label}{column[begin]}"
    column[end - 1] += ")"
  return column
