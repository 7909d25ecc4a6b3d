"""Reads sentences from JSON, Parquet and TFDS: lists of words and of tags.

  {"tokens": ["Ann", "went"], "ner_tags": ["B-PER", "O"]}

This is how Hugging Face's datasets publish token columns. Words are in tokens
or words; tags of entities in ner_tags, tags, labels, ner or named_entities,
others in pos_tags or upos (xpos), tags or labels. Numbers in Parquet become the
names of the classes if datasets wrote the file; other numbers are refused as
entities, and so are -1 and -100, which mean that there is no tag. Rows without
words are left out and counted. A row may also be a document, as OntoNotes has
it (common/ontonotes.py).
"""

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.core.parse_json import parse_json
from maskedlm.data.labelled import objects, tables
from maskedlm.data.labelled.lines import read_lines
from maskedlm.finetune.common import ontonotes
from maskedlm.runtime import console

_WORDS = ("tokens", "words")
_TAGS = {
  None: ("ner_tags", "tags", "labels", "ner", "named_entities"),
  "upos": ("pos_tags", "upos", "tags", "labels", "pos"),
  "xpos": ("xpos", "xpos_tags"),
}
_SUCH_AS = '{"tokens": ["Ann", "went"], "ner_tags": ["B-PER", "O"]}'

# Words, tags (None if there are none), and the line of each word.
Row = tuple[tuple[str, ...], tuple[str, ...] | None, tuple[int, ...]]


def is_format(path: str | pathlib.Path) -> bool:
  """Returns whether a source has named fields: JSON, Parquet or TFDS.

  JSON is a file whose name says so, or whose first line is an object.

  Raises:
    DataError: the file is missing, or can't be read as text.
  """
  is_json = tables.named_suffix(path) in objects.JSON_SUFFIXES
  if objects.are_named(path) or is_json:
    return True
  first = next(filter(str.strip, read_lines(pathlib.Path(path))), "")
  try:
    return isinstance(parse_json(first), dict)
  except ValueError:
    return False


def read_rows(
  path: str | pathlib.Path, *, conllu_tag: str | None
) -> Iterator[Row]:
  """Yields the sentences of a file.

  Args:
    path: the file.
    conllu_tag: upos or xpos for parts of speech, None for entities.

  Raises:
    DataError: the file is missing or has no words; a row is no object, or has
      other words and tags than described above.
  """
  empty, found = 0, False
  found_rows = objects.read_objects(path, such_as=_SUCH_AS)
  for number, fields in ontonotes.each_sentence(found_rows):
    where = f"{path}:{number}"
    words = _list(fields, _WORDS, where)
    if words is None:
      raise DataError(
        f"{where}: no {' or '.join(map(repr, _WORDS))}; there are "
        f"{', '.join(map(repr, fields)) or 'no fields'}; expected an object "
        f"such as {_SUCH_AS}."
      )
    if not words:
      empty += 1
      continue
    found = True
    if not all(isinstance(word, str) and word for word in words):
      raise DataError(f"{where}: words are not all texts; expected {_SUCH_AS}.")
    tags = _list(fields, _TAGS[conllu_tag], where)
    if tags is not None:
      tags = tuple(_tag(tag, where) for tag in tags)
      if len(tags) != len(words):
        raise DataError(
          f"{where}: {counted(len(words), 'word')}, but "
          f"{counted(len(tags), 'tag')}; expected a tag "
          "for each word."
        )
    yield tuple(words), tags, (number,) * len(words)
  if empty:
    console.log(f"{path}: rows without words, left out: {empty:,}")
  if not found:
    raise DataError(f"{path}: the file has no words; expected {_SUCH_AS}.")


def _list(
  fields: Mapping[str, Any], names: Sequence[str], where: str
) -> list[Any] | None:
  """Returns the first of these fields that is there and not null, or None."""
  for name in names:
    value = fields.get(name)
    if value is None:
      continue
    if not isinstance(value, list):
      raise DataError(
        f"{where}: {name!r} is {str(value)[:40]!r}; expected a list."
      )
    return value
  return None


def _tag(tag: Any, where: str) -> str:
  if isinstance(tag, int) and not isinstance(tag, bool) and tag >= 0:
    return str(tag)
  if isinstance(tag, str) and tag.strip():
    return tag.strip()
  raise DataError(
    f"{where}: the tag {tag!r} is none, or no text; expected one for every "
    "word or for none."
  )
