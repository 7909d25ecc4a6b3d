"""Predicates of a window of a sentence, and the arguments that tags give."""

from collections.abc import Sequence

from maskedlm.data.labelled import bio
from maskedlm.data.labelled.bio import Entity
from maskedlm.data.labelled.formats.predicates import VERB, Predicate


def clip(args: Sequence[Entity], begin: int, end: int) -> list[Entity]:
  """Returns the parts of spans in words begin to end - 1, shifted to begin."""
  parts = (
    Entity(label, max(first, begin) - begin, min(last, end) - begin)
    for label, first, last in args
  )
  return [part for part in parts if part.begin < part.end]


def read_tags(index: int, tags: Sequence[str], first_word: int) -> Predicate:
  """Returns the predicate whose arguments BIO tags give.

  Args:
    index: of the predicate's word in the sentence.
    tags: of the words of a window.
    first_word: the window's first word.
  """
  verb = Entity(VERB, index, index + 1)
  found = (
    Entity(x.type, x.begin + first_word, x.end + first_word)
    for x in bio.find_entities(tags)
  )
  return Predicate(index, tuple(x for x in found if x != verb))
