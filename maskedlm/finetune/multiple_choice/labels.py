"""Finds which choice a label means: an index, a letter, a name or a text.

  the labels of a file          the first choice is
  0, 1, 2                       0
  A, b, C                       A
  choice1, ending0, OptionA     the column of that name
  1, 2 beside columns choice1,  1 if no label is 0 and one is the number of
  choice2, ...                  choices; else task.first_label says it
  the text of a choice          that choice
  "", -, ?, -1, null            none: there is no gold label

Numbers beside letters are refused, as ARC's 1 is A's choice, unless
task.first_label is given.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.labels import NO_LABEL, NO_NUMBER

_NONE = frozenset((*NO_LABEL, *NO_NUMBER))
_NUMBER = re.compile(r"(\d+)(?:\.0*)?")
_LETTER = re.compile(r"[A-Za-z]")


class Label(NamedTuple):
  """A label, and what it may mean."""

  text: str
  choices: tuple[str, ...]
  names: tuple[str, ...]  # The columns of the choices, if they have any.
  where: str


def find_indices(
  labels: Sequence[Label], *, first_label: str = ""
) -> list[int | None]:
  """Returns the index of each label's choice, from 0; None for no gold label.

  Args:
    labels: all labels of a file.
    first_label: the label of the first choice, 0, 1 or A; "" for what the file
      shows.

  Raises:
    DataError: a label is no choice, or the file doesn't show which it means.
  """
  given = [x for x in labels if x.text not in _NONE]
  numbers = [x for x in given if _NUMBER.fullmatch(x.text)]
  letters = [x for x in given if _LETTER.fullmatch(x.text)]
  if numbers and letters and first_label not in ("0", "1"):
    raise DataError(
      f"{numbers[0].where}: label {numbers[0].text!r}, but {letters[0].text!r} "
      f"at {letters[0].where}; expected numbers or letters: if 1 is the first "
      "choice, as in ARC, --config.task.first_label=1."
    )
  base = int(first_label) if first_label in ("0", "1") else _base(numbers)
  # The texts of choices that are numbers, or indices?
  is_text = not first_label and all(x.text in x.choices for x in given)
  return [
    None if x.text in _NONE else _index(x, base, is_text=is_text)
    for x in labels
  ]


def _base(numbers: Sequence[Label]) -> int:
  """Returns the number of the first choice.

  Raises:
    DataError: the columns are numbered from 1, and the labels may be from 0.
  """
  values = [_value(x) for x in numbers]
  if not numbers or 0 in values or not numbers[0].names:
    return 0
  first = re.search(r"\d+$", numbers[0].names[0])
  if not first or int(first[0]) == 0:
    return 0
  if any(v == len(x.choices) for v, x in zip(values, numbers, strict=True)):
    return 1
  raise DataError(
    f"{numbers[0].where}: label {numbers[0].text!r} may be the first or the "
    f"second choice, as the columns begin with {numbers[0].names[0]!r} and no "
    "label is 0 or the last column's: set --config.task.first_label=1 or 0."
  )


def _value(label: Label) -> int:
  return int(_NUMBER.fullmatch(label.text)[1])


def _index(label: Label, base: int, *, is_text: bool) -> int:
  count = len(label.choices)
  found = None
  if _NUMBER.fullmatch(label.text):
    found = _value(label) - base
  elif _LETTER.fullmatch(label.text):
    found = ord(label.text.upper()) - ord("A")
  elif label.text in label.names:
    return label.names.index(label.text)
  same = [i for i, text in enumerate(label.choices) if text == label.text]
  if found is None and len(same) == 1:
    return same[0]
  if is_text and same != [found]:
    raise DataError(
      f"{label.where}: label {label.text!r} may be an index or the text of a "
      "choice; expected an index, with --config.task.first_label=0, 1 or A."
    )
  if found is None or not 0 <= found < count:
    last = chr(ord("A") + count - 1)
    raise DataError(
      f"{label.where}: label {label.text!r}; expected the index of the correct "
      f"choice, {base} to {base + count - 1} or A to {last}"
      f"{'' if base else ' (from 1: --config.task.first_label=1)'}."
    )
  return found
