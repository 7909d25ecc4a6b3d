"""BIO tags and variants: which are well-formed, and which entities they mean.

B-PER begins an entity of type PER, I-PER continues it, O is outside any entity
(Ramshaw and Marcus, 1995). These schemes are supported:

  bio    every entity begins with B (IOB2).
  iob1   an entity begins with I, or with B right after one of its own type.
  bioes  B, I ... I, E, and S for an entity of one word.
  io     types alone, or with I; entities of one type are never adjacent.

Files may also have other forms, such as BILOU: tag_forms.py.

`find_entities` reads any of them as conlleval does, which also interprets
ill-formed tags; `find_strict_entities` returns only well-formed entities.
"""

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import tag_forms

SCHEMES = ("bio", "iob1", "bioes", "io")
# config.task.file_scheme.
FILE_SCHEMES = ("auto", *SCHEMES, "any")
_PREFIXES = {"bio": "BI", "iob1": "BI", "bioes": "BIES", "io": "I"}


class Entity(NamedTuple):
  """An entity: words begin to end - 1 of a sentence."""

  type: str
  begin: int
  end: int


def split_tag(tag: str) -> tuple[str, str]:
  """Returns (prefix, type): "B-per-son" -> ("B", "per-son"); "O" -> ("O", "").

  Raises:
    ValueError: the tag is not an entity tag.

  >>> split_tag("I-person"), split_tag("O")
  (('I', 'person'), ('O', ''))
  """
  prefix, dash, entity_type = tag.partition("-")
  is_known = prefix in ("B", "I", "E", "S") or (prefix == "O" and not dash)
  if not is_known or bool(dash) != bool(entity_type):
    raise ValueError(f"{tag!r} is not an entity tag")
  return prefix, entity_type


def join_tag(prefix: str, entity_type: str) -> str:
  """Returns the tag with a prefix and a type: the inverse of split_tag."""
  return f"{prefix}-{entity_type}" if entity_type else prefix


def find_entities(tags: Sequence[str]) -> list[Entity]:
  """Returns the entities of a sentence, well-formed or not, as conlleval does.

  A tag continues the previous tag's entity if their types are equal and their
  prefixes are B or I, then I or E; any other tag except O begins an entity.

  >>> [tuple(x) for x in find_entities(["O", "B-PER", "I-PER", "I-LOC"])]
  [('PER', 1, 3), ('LOC', 3, 4)]
  """
  entities: list[Entity] = []
  previous = "O", ""
  for i, tag in enumerate(map(split_tag, tags)):
    if _continues(previous, tag):
      entities[-1] = entities[-1]._replace(end=i + 1)
    elif tag[0] != "O":
      entities.append(Entity(tag[1], i, i + 1))
    previous = tag
  return entities


def find_strict_entities(tags: Sequence[str], scheme: str) -> list[Entity]:
  """Returns only the entities that are well-formed in bio or bioes."""
  return [
    entity
    for entity in find_entities(tags)
    if list(tags[entity.begin : entity.end]) == _tags_of(entity, scheme)
  ]


def entity_tags(
  entities: Iterable[Entity], length: int, scheme: str = "bio"
) -> list[str]:
  """Returns the tags of a sentence of `length` words with these entities."""
  tags = ["O"] * length
  for entity in entities:
    tags[entity.begin : entity.end] = _tags_of(entity, scheme)
  return tags


def repair_tags(tags: Sequence[str], scheme: str = "bio") -> list[str]:
  """Returns well-formed tags for the entities that find_entities finds."""
  return entity_tags(find_entities(tags), len(tags), scheme)


def may_follow(previous: str | None, tag: str | None, scheme: str) -> bool:
  """Returns whether tag may follow previous; None is a sentence boundary."""
  before = ("O", "") if previous is None else split_tag(previous)
  after = ("O", "") if tag is None else split_tag(tag)
  if scheme == "bio":
    return after[0] != "I" or _continues(before, after)
  if scheme == "io":
    return after[0] in ("O", "I")
  if scheme == "iob1":
    return after[0] != "B" or (before[0] != "O" and before[1] == after[1])
  if before[0] in "BI" or after[0] in "IE":  # An entity is or must be open.
    return _continues(before, after)
  return True


def detect_scheme(sentences: Iterable[Sequence[str]]) -> str:
  """Returns the scheme of these tags: bio, iob1 or bioes.

  The result is iob1 only if there is a B, every B is right after an entity of
  its type, and some entity begins with I. Tags without any B may be ill-formed
  bio as well as iob1, so they count as bio.
  """
  has_b = begins_with_i = False
  iob1 = True
  for tags in sentences:
    previous = None
    for tag in tags:
      prefix = split_tag(tag)[0]
      if prefix in "ES":
        return "bioes"
      has_b |= prefix == "B"
      begins_with_i |= not may_follow(previous, tag, "bio")
      iob1 &= may_follow(previous, tag, "iob1")
      previous = tag
  return "iob1" if iob1 and has_b and begins_with_i else "bio"


def tag_converter(
  sentences: Sequence[Sequence[str]],
  path: str,
  *,
  file_scheme: str = "auto",
  scheme: str = "bio",
  repair_bio: bool = False,
) -> Callable[[Sequence[str], Sequence[int]], list[str]]:
  """Returns a function that checks a sentence's tags and converts them.

  It is given the tags and the line number of each, returns tags in `scheme`,
  and raises DataError if one is unknown or ill-formed, with the file and line.

  Args:
    sentences: the tags of each sentence of the file, which decide its scheme.
    file_scheme: one of FILE_SCHEMES; auto detects bio, iob1 and bioes, and any
      does so in the other forms of tag_forms.py, too.
    scheme: the scheme of the returned tags, bio or bioes.
    repair_bio: read ill-formed tags as conlleval does instead of raising.
  """
  standard = tag_forms.standard_tags(
    itertools.chain.from_iterable(sentences), scheme=file_scheme
  )
  if file_scheme in ("auto", "any"):
    readable = {tag: x for tag, x in standard.items() if x is not None}
    known = (tags for tags in sentences if readable.keys() >= {*tags})
    file_scheme = detect_scheme([readable[x] for x in tags] for tags in known)

  def convert(tags: Sequence[str], lines: Sequence[int]) -> list[str]:
    converted = []
    for tag, line in zip(tags, lines, strict=True):
      standard_tag = standard[tag]
      if standard_tag is None:
        raise _unknown_tag(tag, f"{path}:{line}", standard)
      converted.append(standard_tag)
    if not repair_bio:
      _check_tags(converted, lines, path, file_scheme)
    return repair_tags(converted, scheme)

  return convert


def all_tags(types: Iterable[str], scheme: str) -> list[str]:
  """Returns O, then every tag of these types, sorted."""
  return [
    "O",
    *sorted(
      join_tag(prefix, entity_type)
      for prefix in _PREFIXES[scheme]
      for entity_type in types
    ),
  ]


def _unknown_tag(tag: str, where: str, tags: Collection[str]) -> DataError:
  hint = (
    "if they are BILOU or BMES, or tags such as B_PER, b-per or PER-B, set "
    "--config.task.file_scheme=any"
  )
  if "O" in tags and tag_forms.are_types(tags):
    hint = (
      "if a tag is the type alone and adjacent words of a type are one "
      "entity, set --config.task.file_scheme=io"
    )
  return DataError(
    f"{where}: {tag_forms.unknown(tag)}; expected O, B-TYPE or I-TYPE (or S-, "
    f"E-), in --config.task.tag_column; {hint}; other tags, such as parts of "
    "speech, are learnt with --config.task.task=pos."
  )


def _check_tags(tags, lines, path: str, scheme: str) -> None:
  previous = None
  for tag, line in zip([*tags, None], [*lines, *lines[-1:]], strict=True):
    is_known = tag is None or split_tag(tag)[0] in f"O{_PREFIXES[scheme]}"
    if not is_known or not may_follow(previous, tag, scheme):
      before = f"after {previous}" if previous else "at the start of a sentence"
      what = tag or "the end of the sentence"
      hint = ""
      if scheme == "bio" and tag:
        begin = join_tag("B", split_tag(tag)[1])
        hint = f"; expected {begin} where an entity begins"
      raise DataError(
        f"{path}:{line}: {what} {before} is ill-formed {scheme.upper()}{hint}. "
        "Correct the file, or set --config.task.repair_bio=True to read it as "
        "conlleval does, or --config.task.file_scheme (bio, iob1, bioes, io) "
        "if it uses another scheme."
      )
    previous = tag


def _continues(before: tuple[str, str], after: tuple[str, str]) -> bool:
  return before[0] in "BI" and after[0] in "IE" and before[1] == after[1]


def _tags_of(entity: Entity, scheme: str) -> list[str]:
  count = entity.end - entity.begin
  if scheme == "bio":
    prefixes = "B" + "I" * (count - 1)
  else:
    prefixes = "S" if count == 1 else "B" + "I" * (count - 2) + "E"
  return [join_tag(prefix, entity.type) for prefix in prefixes]
