"""Which choice a label means: an index, a letter, a name or a text.

  the label                     the first choice is
  0, 1, 2                       0; in the Hub's WinoGrande and Social IQa, 1;
                                beside choice1, ... task.first_label must say it
  A, b, C                       A
  choice1, ending0, OptionA     the column of that name
  the text of a choice          that choice
  "", -, ?, -1, null            none: there is no gold label

Numbers beside letters, and a number that is also a choice's text, are refused
without task.first_label.
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
  where: str
  names: tuple[str, ...] = ()  # The columns of the choices, if they have any.
  letters: tuple[str, ...] = ()  # The choices' own labels, as in ARC.
  first: str = ""  # The number of the first choice; "" if it must be said.


def find_indices(
  labels: Sequence[Label], *, first_label: str = ""
) -> list[int | None]:
  """Returns the index of each label's choice, from 0; None for no gold label.

  The labels are all of a file. `first_label` is that of the first choice, 0, 1
  or A; "" for what the format says.

  Raises:
    DataError: a label is no choice, or may be two.
  """
  given = [x for x in labels if x.text not in _NONE and not x.letters]
  number = next((x for x in given if _NUMBER.fullmatch(x.text)), None)
  letter = next((x for x in given if _LETTER.fullmatch(x.text)), None)
  if number and letter and first_label not in ("0", "1"):
    raise DataError(
      f"{number.where}: label {number.text!r}, but {letter.text!r} at "
      f"{letter.where}; expected numbers or letters: if 1 is the first choice, "
      "as in ARC, --config.task.first_label=1."
    )
  return [None if x.text in _NONE else _index(x, first_label) for x in labels]


def _index(label: Label, first_label: str) -> int:
  text, index, base = label.text, None, 0
  number = first_label != "A" and _NUMBER.fullmatch(text)
  if label.letters:
    index = label.letters.index(text) if text in label.letters else -1
  elif number:
    if not (first_label or label.first):
      raise DataError(
        f"{label.where}: label {text!r} may be the first or the second choice, "
        f"as the columns begin with {label.names[0]!r}: set "
        "--config.task.first_label=1 or 0."
      )
    base = int(first_label or label.first)
    index = int(number[1]) - base
  elif _LETTER.fullmatch(text):
    index = ord(text.upper()) - ord("A")
  elif text in label.names:
    index = label.names.index(text)
  same = [i for i, x in enumerate(label.choices) if x == text]
  is_plain = number and not (first_label or label.letters)
  if is_plain and same not in ([], [index]):
    raise DataError(
      f"{label.where}: label {text!r} may be an index or the text of a "
      "choice; expected an index, with --config.task.first_label=0, 1 or A."
    )
  if index is None and len(same) == 1:
    index = same[0]
  count = len(label.choices)
  if index is None or not 0 <= index < count:
    expected = f"{base} to {base + count - 1} or A to {chr(64 + count)}"
    if not base:
      expected += " (from 1: --config.task.first_label=1)"
    if label.letters:
      expected = f"one of {', '.join(label.letters)}"
    raise DataError(
      f"{label.where}: label {text!r}; expected the index of the correct "
      f"choice, {expected}."
    )
  return index
