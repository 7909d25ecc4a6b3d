"""The forms in which files and models write entity tags.

  written                    means
  B-PER, I-PER, E-, S-, O    the standard form: prefix, dash, type
  B, I                       entities without types
  with file_scheme=any, and in the labels of models:
  B_PER, b-per, o            an underscore, or lower case
  L-, U- (BILOU)             the last word of an entity; its only one
  M-, W- (BMES, BMEWO)       a word in between; an entity of one word
  PER-B, PER_I               the type first, if all tags of a file are so
  with file_scheme=io:
  PER, O                     a type alone: adjacent words with the same one are
                             one entity

Anything else is refused by its name: B-, PER beside B-ORG, B-PER|B-ORG (several
tags), (PER* (brackets), _ (not annotated), numbers.
"""

import re
from collections.abc import Iterable

_PREFIXES = {**dict(zip("BIES", "BIES", strict=True)), "M": "I"}
_PREFIXES |= {"L": "E", "U": "S", "W": "S"}
_LETTERS = "".join(_PREFIXES)
# Of each form, the prefix and the type; neither for O.
_STANDARD = re.compile("(?P<prefix>[BIES])(?:-(?P<type>.+))?|O")
_FIRST = re.compile(f"(?i:(?P<prefix>[{_LETTERS}])(?:[-_](?P<type>.+))?|O)")
_LAST = re.compile(f"(?i:(?P<type>.+)[-_](?P<prefix>[{_LETTERS}])|O)")
_SEVERAL = re.compile(f"[|,;/+ ][{_LETTERS}][-_]|[|,;]O$")
# What begins like a prefix is no type, whatever follows: B:PER, BEGIN-PER.
_PREFIXED = re.compile(rf"(?:[{_LETTERS}]|(?i:begin|inside))[^\w\s]")
_TYPE = re.compile(r"[^\W\d_][^|*()]*")


class UnknownTagError(ValueError):
  """A tag that no form has."""


def standard_tags(tags: Iterable[str], *, scheme: str) -> dict[str, str | None]:
  """Returns tag -> standard tag, with the prefixes B, I, E, S, or O.

  The form of all tags is the one that reads most of them; what it doesn't read
  is None.

  Args:
    tags: all tags of a file or a model.
    scheme: "io" if tags are types alone; "any" for all forms with prefixes;
      another one for the standard form alone.
  """
  distinct = dict.fromkeys(tags)
  if scheme == "io":
    return {tag: _of_type(tag) for tag in distinct}
  forms = (_FIRST, _LAST) if scheme == "any" else (_STANDARD,)
  readings = [{tag: _read(form, tag) for tag in distinct} for form in forms]
  return max(readings, key=lambda read: sum(map(bool, read.values())))


def unknown(tag: str) -> UnknownTagError:
  """Returns the error for a tag that no form has, which says why."""
  reason = ""
  if tag == "_":
    reason = " (not annotated)"
  elif "*" in tag or "(" in tag:
    reason = " (brackets)"
  elif _SEVERAL.search(tag):
    reason = " (several tags)"
  elif re.fullmatch("-?[0-9]+", tag):
    reason = " (a number; the names of the classes are missing)"
  return UnknownTagError(f"{tag!r}{reason} is not an entity tag")


def are_types(tags: Iterable[str]) -> bool:
  """Returns whether tags look like those of io: O, and types without prefix."""
  types = {tag for tag in tags if tag != "O"}
  if any(f"I{tag[1:]}" in types for tag in types if tag.startswith("B")):
    return False  # BPER and IPER.
  return bool(types) and all(
    # Single letters are parts of speech in some tagsets, O among them.
    len(tag) > 1
    and _is_type(tag)
    and not _read(_FIRST, tag)
    and not _read(_LAST, tag)
    for tag in types
  )


def _read(form: re.Pattern, tag: str) -> str | None:
  tag = tag.strip()
  match = form.fullmatch(tag)
  if not match or _SEVERAL.search(tag):
    return None
  if match["prefix"] is None:
    return "O"
  prefix = _PREFIXES[match["prefix"].upper()]
  return f"{prefix}-{match['type']}" if match["type"] else prefix


def _of_type(tag: str) -> str | None:
  if tag in ("O", "o"):
    return "O"
  if re.fullmatch("I-.+", tag):
    return tag
  return f"I-{tag}" if _is_type(tag) else None


def _is_type(tag: str) -> bool:
  return bool(_TYPE.fullmatch(tag)) and not _PREFIXED.match(tag)
