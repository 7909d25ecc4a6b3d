"""What the labels of a tagger of entities mean.

Our own are the tags of its scheme. An imported model may have others: BILOU's
L and U, what stood at tokens that are no words (X, [CLS], [SEP]), or IOB1's
I alone, where no two entities of a type ever met.
"""

from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.finetune.common import bio

_OF_BIOES = ("S-", "E-", "L-", "U-")
_OF_BIO = ("B-", "I-")


class Meaning(NamedTuple):
  """Of T labels."""

  tags: tuple[str, ...]  # [T]: what each label says of a word.
  ids: dict[str, int]  # A word's tag -> its label.
  is_iob1: bool  # What they say together is to be rewritten: bio.repair.


def scheme_of(labels: Sequence[str]) -> str | None:
  """bio or bioes, of labels that may be imported; None: not of entities."""
  if not any(label.startswith(_OF_BIO) for label in labels):
    return None
  is_bioes = any(label.startswith(_OF_BIOES) for label in labels)
  return "bioes" if is_bioes else "bio"


def meaning(labels: Sequence[str], scheme: str) -> Meaning:
  """What labels of entities mean; one that is no tag says O of a word."""
  read = [_read(label) for label in labels]
  ids: dict[str, int] = {}
  for i, tag in enumerate(read):
    if tag is not None:
      ids.setdefault(tag, i)
  kinds = {kind for prefix, kind in map(bio.split_tag, ids) if prefix == "I"}
  begins = {kind: bio.join_tag("B", kind) for kind in kinds}
  is_iob1 = scheme == "bio" and not {*begins.values()} <= {*ids}
  if is_iob1:
    for kind, tag in begins.items():
      ids.setdefault(tag, ids[bio.join_tag("I", kind)])
  return Meaning(tuple(tag or "O" for tag in read), ids, is_iob1)


def _read(label: str) -> str | None:
  """The tag, in our letters; None if it is none."""
  try:
    return bio.join_tag(*bio.split_tag(label))
  except ValueError:
    return None
