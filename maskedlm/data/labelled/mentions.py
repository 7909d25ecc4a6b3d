"""Mentions: parts of a text, which files name by their words and offsets."""

import re
from typing import NamedTuple

from maskedlm.core.errors import DataError


class Mention(NamedTuple):
  """text[begin:end], in characters (code points)."""

  begin: int
  end: int


def find_mention(
  text: str, name: str, offset: str, *, what: str, where: str
) -> Mention:
  """Returns the mention that a file specifies by its text and its offset.

  Args:
    text: the text that contains it.
    name: the mention's own text.
    offset: the number of characters before it, as written in the file.
    what, where: the field's name and FILE:LINE, for error messages.

  Raises:
    DataError: the mention is empty, the offset is not a number, or the text at
      the offset is different.
  """
  if not name.strip():
    raise DataError(f"{where}: {what} is empty; expected a part of the text.")
  if not re.fullmatch("[0-9]+", offset.strip()):
    raise DataError(
      f"{where}: the offset {offset!r} of {what} is not a number; expected the "
      "number of characters before it, such as 17."
    )
  begin = int(offset)
  found = text[begin : begin + len(name)]
  if found == name:
    return Mention(begin, begin + len(name))
  places = [m.start() for m in re.finditer(re.escape(name), text)]
  nearest = min(places, key=lambda place: abs(place - begin), default=None)
  hint = (
    "the text doesn't contain it" if nearest is None else f"it is at {nearest}"
  )
  raise DataError(
    f"{where}: {what} {name!r} is not at its offset {begin}, where the text "
    f"has {found!r}; {hint}. Offsets count characters, not bytes."
  )
