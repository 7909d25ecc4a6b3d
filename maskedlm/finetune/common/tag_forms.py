"""The forms in which files and models write entity tags.

  written                    means
  B-PER, I-PER, O            the standard form: prefix, dash, type
  B_PER, b-per, o            the same: an underscore, or lower case
  B, I                       entities without types
  E-, S-; L-, U- (BILOU)     the last word of an entity; its only one
  M-, W- (BMES, BMEWO)       a word in between; an entity of one word
  PER-B, PER_I               the type first, if all tags of a file are so
  PER, O                     (scheme io) a type alone: adjacent words with the
                             same one are one entity

Anything else is refused by its name: B-, PER beside B-ORG, B-PER|B-ORG (several
tags), (PER* (brackets), _ (not annotated), numbers.
"""

import re
from collections.abc import Iterable

_PREFIXES = {**dict(zip("BIES", "BIES", strict=True)), "M": "I"}
_PREFIXES |= {"L": "E", "U": "S", "W": "S"}
_LETTERS = "".join(_PREFIXES)
_FIRST = re.compile(f"([{_LETTERS}{_LETTERS.lower()}])(?:[-_](.+))?")
_LAST = re.compile(f"(.+)[-_]([{_LETTERS}{_LETTERS.lower()}])")
_SEVERAL = re.compile(f"[|,;/+ ][{_LETTERS}][-_]|[|,;]O$")
# What begins like a prefix is no type, whatever follows: B:PER, BEGIN-PER.
_PREFIXED = re.compile(rf"(?:[{_LETTERS}]|(?i:begin|inside))[^\w\s]")
_TYPE = re.compile(r"[^\W\d_][^|*()]*")


class UnknownTagError(ValueError):
  """A tag that no form has."""

  def __init__(self, tag: str, message: str):
    super().__init__(message)
    self.tag = tag


def standard_tags(
  tags: Iterable[str], *, scheme: str = "auto"
) -> dict[str, str]:
  """Returns tag -> standard tag, with the prefixes B, I, E, S, or O.

  Args:
    tags: all tags of a file or a model, in their order.
    scheme: "io" if tags are types alone; others are told by their prefixes.

  Raises:
    UnknownTagError: a tag has none of these forms.
  """
  distinct = dict.fromkeys(tags)
  if scheme == "io":
    return {tag: _of_type(tag) for tag in distinct}
  for form in (_of_prefix, _of_suffix):
    found = {tag: form(tag) for tag in distinct}
    if None not in found.values():
      return found
  return {tag: _of_prefix(tag) or _refused(tag) for tag in distinct}


def are_types(tags: Iterable[str]) -> bool:
  """Returns whether tags look like those of io: O, and types without prefix."""
  types = {tag for tag in tags if tag != "O"}
  if any(f"I{tag[1:]}" in types for tag in types if tag.startswith("B")):
    return False  # BPER and IPER.
  return bool(types) and all(
    # Single letters are parts of speech in some tagsets, O among them.
    len(tag) > 1
    and _is_type(tag)
    and not _of_prefix(tag)
    and not _of_suffix(tag)
    for tag in types
  )


def _of_prefix(tag: str) -> str | None:
  tag = tag.strip()
  if tag in ("O", "o"):
    return "O"
  match = _FIRST.fullmatch(tag)
  if not match or _SEVERAL.search(tag):
    return None
  return _joined(match[1], match[2] or "")


def _of_suffix(tag: str) -> str | None:
  tag = tag.strip()
  if tag in ("O", "o"):
    return "O"
  match = _LAST.fullmatch(tag)
  if not match or _SEVERAL.search(tag):
    return None
  return _joined(match[2], match[1])


def _of_type(tag: str) -> str:
  if tag in ("O", "o"):
    return "O"
  if re.fullmatch("I-.+", tag):
    return tag
  if not _is_type(tag):
    _refused(tag)
  return f"I-{tag}"


def _is_type(tag: str) -> bool:
  return bool(_TYPE.fullmatch(tag)) and not _PREFIXED.match(tag)


def _joined(letter: str, entity_type: str) -> str:
  prefix = _PREFIXES[letter.upper()]
  return f"{prefix}-{entity_type}" if entity_type else prefix


def _refused(tag: str) -> str:
  reason = ""
  if tag == "_":
    reason = " (not annotated)"
  elif "*" in tag or "(" in tag:
    reason = " (brackets)"
  elif _SEVERAL.search(tag):
    reason = " (several tags)"
  elif re.fullmatch("-?[0-9]+", tag):
    reason = " (a number; the names of the classes are missing)"
  raise UnknownTagError(tag, f"{tag!r}{reason} is not an entity tag")
