"""Maps the labels of an entity tagger to tags.

maskedlm's own labels are the tags of its scheme. An imported model may have
others: BILOU's L and U, labels of tokens that are not words (X, [CLS], [SEP]),
or only IOB1's I, if two entities of a type were never adjacent.
"""

from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.finetune.common import bio

_OF_BIOES = ("S-", "E-", "L-", "U-")
_OF_BIO = ("B-", "I-")


class LabelMeanings(NamedTuple):
  """The tags that T labels stand for."""

  tags: tuple[str, ...]  # [T]: the tag that each label means.
  ids: dict[str, int]  # Tag -> label.
  is_iob1: bool  # Predicted tags need bio.repair_tags.


def detect_label_scheme(labels: Sequence[str]) -> str | None:
  """Returns bio or bioes, or None if the labels are not entity tags."""
  if not any(label.startswith(_OF_BIO) for label in labels):
    return None
  is_bioes = any(label.startswith(_OF_BIOES) for label in labels)
  return "bioes" if is_bioes else "bio"


def read_labels(labels: Sequence[str], scheme: str) -> LabelMeanings:
  """Returns the meanings of entity labels; a label that is no tag means O."""
  tags = [_read_label(label) for label in labels]
  ids: dict[str, int] = {}
  for i, tag in enumerate(tags):
    if tag is not None:
      ids.setdefault(tag, i)
  begins = {
    entity_type: bio.join_tag("B", entity_type)
    for prefix, entity_type in map(bio.split_tag, ids)
    if prefix == "I"
  }
  is_iob1 = scheme == "bio" and not {*begins.values()} <= {*ids}
  if is_iob1:
    for entity_type, tag in begins.items():
      ids.setdefault(tag, ids[bio.join_tag("I", entity_type)])
  return LabelMeanings(tuple(tag or "O" for tag in tags), ids, is_iob1)


def _read_label(label: str) -> str | None:
  """Returns the tag with BIOES's prefixes, or None if the label is no tag."""
  try:
    return bio.join_tag(*bio.split_tag(label))
  except ValueError:
    return None
