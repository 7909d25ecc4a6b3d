"""BIO tags and their kin: what is well-formed, and which entities they mean.

B-PER begins an entity of type PER, I-PER goes on with it, O is outside of any
(Ramshaw and Marcus, 1995). Three ways of writing it are known:

  bio    every entity begins with B (IOB2).
  iob1   it begins with I, and with B only right after another of its type.
  bioes  B, I ... I, E, and S for an entity of one word; also BILOU's L and U.

There is one reading of all of them, that of conlleval, in which what is
ill-formed has a meaning too: `entities`. And a strict one.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from maskedlm.core.errors import DataError

SCHEMES = ("bio", "iob1", "bioes")
_PREFIXES = {"bio": "BI", "iob1": "BI", "bioes": "BIES"}
_BILOU = {"L": "E", "U": "S"}


class Entity(NamedTuple):
  """Words begin to end - 1 of a sentence."""

  type: str
  begin: int
  end: int


def split_tag(tag: str) -> tuple[str, str]:
  """ "B-per-son" -> ("B", "per-son"); "O" -> ("O", ""); "B" -> ("B", "").

  Raises:
    ValueError: the tag is nothing of the kind.
  """
  prefix, dash, kind = tag.partition("-")
  prefix = _BILOU.get(prefix, prefix)
  known = prefix in ("B", "I", "E", "S") or (prefix == "O" and not dash)
  if not known or bool(dash) != bool(kind):
    raise ValueError(f"{tag!r} is no tag of entities")
  return prefix, kind


def join_tag(prefix: str, kind: str) -> str:
  """The inverse of split_tag."""
  return f"{prefix}-{kind}" if kind else prefix


def find_entities(tags: Sequence[str]) -> list[Entity]:
  """The entities of a sentence, well-formed or not, as conlleval reads it.

  A tag goes on with the entity before it if that has the same type and both
  say so (B or I, then I or E); any other tag but O begins one.
  """
  found = []
  previous = "O", ""
  for i, tag in enumerate(map(split_tag, tags)):
    if _continues(previous, tag):
      found[-1] = found[-1]._replace(end=i + 1)
    elif tag[0] != "O":
      found.append(Entity(tag[1], i, i + 1))
    previous = tag
  return found


def find_strict_entities(tags: Sequence[str], scheme: str) -> list[Entity]:
  """Only the entities that are well-formed in bio or bioes."""
  return [
    entity
    for entity in find_entities(tags)
    if list(tags[entity.begin : entity.end]) == _written(entity, scheme)
  ]


def entity_tags(
  found: Iterable[Entity], length: int, scheme: str = "bio"
) -> list[str]:
  """The tags of a sentence of so many words with these entities."""
  tags = ["O"] * length
  for entity in found:
    tags[entity.begin : entity.end] = _written(entity, scheme)
  return tags


def repair_tags(tags: Sequence[str], scheme: str = "bio") -> list[str]:
  """The well-formed tags that have the same entities."""
  return entity_tags(find_entities(tags), len(tags), scheme)


def may_follow(previous: str | None, tag: str | None, scheme: str) -> bool:
  """Whether the scheme allows the tag there; None = the sentence's border."""
  before = ("O", "") if previous is None else split_tag(previous)
  after = ("O", "") if tag is None else split_tag(tag)
  if scheme == "bio":
    return after[0] != "I" or _continues(before, after)
  if scheme == "iob1":
    return after[0] != "B" or (before[0] != "O" and before[1] == after[1])
  if before[0] in "BI" or after[0] in "IE":  # An entity is open, or has to be.
    return _continues(before, after)
  return True


def detect_scheme(sentences: Iterable[Sequence[str]]) -> str:
  """The scheme that tags are written in: bio, iob1 or bioes.

  iob1 only where it shows: each B stands right after an entity of its type,
  there is at least one, and entities begin with I. A file with no B at all
  may as well be broken, so it counts as bio.
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


def convert_tags(
  sentences: Sequence[tuple[Sequence[str], Sequence[int]]],
  path: str,
  *,
  file_scheme: str = "auto",
  scheme: str = "bio",
  repair_bio: bool = False,
) -> list[list[str]]:
  """The tags of a file's sentences, checked, in the scheme that is wanted.

  Args:
    sentences: (tags, line of each in the file).
    path: the file, for messages.
    file_scheme: bio, iob1 or bioes; auto: as recognised.
    scheme: bio or bioes, of what is returned.
    repair_bio: ill-formed tags are read as conlleval does, not refused.

  Raises:
    DataError: with file and line, a tag that is none, or ill-formed ones.
  """
  for tags, lines in sentences:
    for tag, line in zip(tags, lines, strict=True):
      try:
        split_tag(tag)
      except ValueError as error:
        raise DataError(
          f"{path}:{line}: {error}; expected O, B-TYPE or I-TYPE (or S-, E-). "
          "For tags of another kind, such as parts of speech: the kind "
          "tagging with --config.task.task=pos."
        ) from None
  if file_scheme == "auto":
    file_scheme = detect_scheme(tags for tags, _ in sentences)
  if not repair_bio:
    for tags, lines in sentences:
      _check(tags, lines, path, file_scheme)
  return [repair_tags(tags, scheme) for tags, _ in sentences]


def all_tags(kinds: Iterable[str], scheme: str) -> list[str]:
  """O, then every tag of these types, sorted."""
  return [
    "O",
    *sorted(
      join_tag(prefix, kind) for prefix in _PREFIXES[scheme] for kind in kinds
    ),
  ]


def _check(tags, lines, path: str, scheme: str) -> None:
  previous = None
  borders = [*zip(tags, lines, strict=True), (None, lines[-1] if lines else 0)]
  for tag, line in borders:
    if not may_follow(previous, tag, scheme):
      before = f"after {previous}" if previous else "at a sentence's beginning"
      thing = tag or "the sentence's end"
      raise DataError(
        f"{path}:{line}: {thing} {before} is ill-formed {scheme.upper()}"
        f"{_expected(tag, scheme)}. Correct the file, or set "
        "--config.task.repair_bio=True to read it as conlleval does, or "
        "--config.task.file_scheme (bio, iob1, bioes) if it is written "
        "otherwise."
      )
    previous = tag


def _expected(tag: str | None, scheme: str) -> str:
  kind = split_tag(tag)[1] if tag else ""
  if scheme == "bio":
    return f"; expected {join_tag('B', kind)}, where an entity begins"
  if scheme == "iob1":
    return f"; expected {join_tag('I', kind)}, as it is right after no other"
  return "; expected S, or B, I, ..., E of one type"


def _continues(before: tuple[str, str], after: tuple[str, str]) -> bool:
  return before[0] in "BI" and after[0] in "IE" and before[1] == after[1]


def _written(entity: Entity, scheme: str) -> list[str]:
  count = entity.end - entity.begin
  if scheme == "bio":
    prefixes = "B" + "I" * (count - 1)
  else:
    prefixes = "S" if count == 1 else "B" + "I" * (count - 2) + "E"
  return [join_tag(prefix, entity.type) for prefix in prefixes]
