"""Maps the labels of an entity tagger to tags.

maskedlm's own labels are the tags of its scheme. An imported model may have
tags in other forms (data/labelled/tag_forms.py), labels of tokens that are not
words (X, [CLS], [SEP]), types alone, or only IOB1's I, if two entities of a
type were never adjacent.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from maskedlm.data.labelled import bio, tag_forms

# Labels of tokens that are not words, or not annotated.
_NO_WORD = re.compile(r"X|_|-DOCSTART-|-?PAD-?|[\[<].*[\]>]", re.IGNORECASE)
_TYPED = re.compile(r"[BI]([^\w\s]|_).")


class LabelMeanings(NamedTuple):
  """The tags that T labels stand for."""

  tags: tuple[str, ...]  # [T]: the tag that each label means.
  ids: dict[str, int]  # Tag -> label.
  is_iob1: bool  # Predicted tags need bio.repair_tags.


def detect_label_scheme(labels: Sequence[str]) -> str | None:
  """Returns bio or bioes, or None if the labels are not entity tags.

  Raises:
    UnknownTagError: some labels are entity tags, but others have no meaning
      among them.
  """
  words = _words(labels)
  if "O" in words and tag_forms.are_types(words):
    return "bio"
  standard = tag_forms.standard_tags(words, scheme="any")
  for label, tag in standard.items():
    if tag is None:
      if any(map(_TYPED.match, words)):
        raise tag_forms.unknown(label)
      return None
  prefixes = {bio.split_tag(tag)[0] for tag in standard.values() if tag}
  if not prefixes & {"B", "I"}:
    return None
  return "bioes" if prefixes & {"E", "S"} else "bio"


def read_labels(labels: Sequence[str], scheme: str) -> LabelMeanings:
  """Returns the meanings of entity labels; a label of no word means O."""
  standard = _standard_tags(_words(labels))
  tags = [standard.get(label) for label in labels]
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


def _words(labels: Sequence[str]) -> list[str]:
  return [label for label in labels if not _NO_WORD.fullmatch(label)]


def _standard_tags(labels: Sequence[str]) -> Mapping[str, str | None]:
  """Returns label -> tag, or None for what detect_label_scheme refuses.

  Older imports have such labels.
  """
  scheme = "io" if tag_forms.are_types(labels) else "any"
  return tag_forms.standard_tags(labels, scheme=scheme)
