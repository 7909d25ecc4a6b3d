"""A question on a text, with its gold answers."""

from typing import NamedTuple

ABSENT = -1


class GoldAnswer(NamedTuple):
  """An answer: context[start : start + len(text)] == text."""

  text: str
  start: int  # ABSENT: it isn't in the text, and counts for the metrics only.


class Example(NamedTuple):
  """A question on a text; examples of one paragraph share its string."""

  question: str
  context: str
  id: str = ""
  # The annotators' answers; () = the question has none, None = unknown. Those
  # that are ABSENT are the last.
  answers: tuple[GoldAnswer, ...] | None = None
  where: str = ""  # FILE: question ID, or FILE:LINE.
