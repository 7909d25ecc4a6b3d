"""Predicates and their arguments, as PropBank and the CoNLL tasks have them.

The arguments of a predicate are labelled spans of words that do not overlap:

  A0 to A5, ARG0 to ARG5, AM-TMP, ARGM-TMP, ...   a role
  C-ROLE     continues an argument of that role that is interrupted
  R-ROLE     refers to it, such as the relative pronoun
  V, C-V     the predicate itself, and a part apart from it ("put ... down")

V is kept only where it is more than the predicate's word, or elsewhere.
"""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.bio import Entity

VERB = "V"
_OF_PREDICATE = (VERB, f"C-{VERB}")


class Predicate(NamedTuple):
  """A predicate and its arguments, in the order of their first words."""

  # Of its word in the sentence, from 0; it hides tuple.index.
  index: int  # type: ignore[assignment]
  args: tuple[Entity, ...] = ()
  sense: str = ""  # Such as "put.01"; "" if unknown.


class Example(NamedTuple):
  """A sentence and its predicates."""

  words: tuple[str, ...]
  # In the order of their words. None if they are to be found.
  predicates: tuple[Predicate, ...] | None = None
  has_args: bool = True  # Whether the arguments of the predicates are known.
  text: str | None = None  # None: the words joined by spaces.
  offsets: tuple[tuple[int, int], ...] = ()  # Characters of the words in text.
  name: str = ""  # The "id" of JSON; it need not be unique.
  where: str = ""  # FILE:LINE of the first word.


def make_predicate(
  index: int, args: Iterable[Entity], *, count: int, where: str, sense: str = ""
) -> Predicate:
  """Returns a checked predicate of a sentence of `count` words.

  Raises:
    DataError: the index or a span is not in the sentence; a span is empty; two
      overlap; an argument other than V or C-V covers the predicate.
  """
  if not 0 <= index < count:
    raise DataError(
      f"{where}: the predicate's index {index}, but the sentence has "
      f"{counted(count, 'word')}: expected 0 to {count - 1}."
    )
  spans = sorted(args, key=lambda x: (x.begin, x.end))
  who = f"{where}: the predicate {index}"
  for label, begin, end in spans:
    shown = f"{who} has {label} from word {begin} to {end - 1}"
    if end <= begin:
      raise DataError(
        f"{shown}: the end is before the start; expected [start, end, label], "
        "the end included."
      )
    if begin < 0 or end > count:
      raise DataError(
        f"{shown}, but the sentence has {counted(count, 'word')}: expected 0 "
        f"to {count - 1}; words are counted from 0, and the end is included."
      )
    if begin <= index < end and label not in _OF_PREDICATE:
      raise DataError(
        f"{shown}, which covers the predicate itself; only V and C-V may."
      )
  for before, after in itertools.pairwise(spans):
    if after.begin < before.end:
      raise DataError(
        f"{who} has overlapping arguments, {before.type} "
        f"[{before.begin}, {before.end - 1}] and {after.type} "
        f"[{after.begin}, {after.end - 1}]; expected each word in at most one."
      )
  kept = (x for x in spans if x != Entity(VERB, index, index + 1))
  return Predicate(index, tuple(kept), sense)


def with_verb(predicate: Predicate) -> list[Entity]:
  """Returns the arguments and V: the predicate's word if no V or C-V has it."""
  args = list(predicate.args)
  if not any(x.begin <= predicate.index < x.end for x in args):
    args.append(Entity(VERB, predicate.index, predicate.index + 1))
  return sorted(args, key=lambda x: x.begin)
