"""Reads trees from JSON, Parquet and TFDS: lists of words, heads and labels.

  {"tokens": ["He", "left"], "head": ["2", "0"], "deprel": ["nsubj", "root"]}

This is how Hugging Face's and TFDS's universal_dependencies publish CoNLL-U,
and, with heads and labels, what `predict --json` prints. Heads count from 1. A
head that is none ("None" there) is that of a token of several words, such as
don't beside do and n't: it is left out, and counted.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import objects
from maskedlm.finetune.dependency import conllu
from maskedlm.runtime import console

_WORDS = ("tokens", "words")
_HEADS = ("head", "heads")
_LABELS = ("deprel", "labels")
_SUCH_AS = (
  '{"tokens": ["He", "left"], "head": [2, 0], "deprel": ["nsubj", "root"]}'
)
_NONE = (None, "None", "_")


def read_sentences(source: str) -> list[conllu.Example]:
  """Returns the sentences of a JSON or Parquet file, or of "tfds:...".

  Raises:
    DataError: the source is missing or has no words; a row has no list of
      words, or other heads and labels than words; the heads are no tree.
  """
  found, ranges, empty = [], 0, 0
  for number, fields in objects.read_objects(source, such_as=_SUCH_AS):
    where = f"{source}:{number}"
    words = _list(fields, _WORDS, where)
    if words is None:
      names = ", ".join(map(repr, fields)) or "no fields"
      raise DataError(
        f"{where}: no 'tokens'; there are {names}; expected {_SUCH_AS}."
      )
    heads = _list(fields, _HEADS, where) or ["_"] * len(words)
    labels = _list(fields, _LABELS, where) or ["_"] * len(words)
    if not len(words) == len(heads) == len(labels):
      raise DataError(
        f"{where}: {counted(len(words), 'word')}, "
        f"{counted(len(heads), 'head')}, {counted(len(labels), 'label')}; "
        "expected as many of each."
      )
    rows = [*zip(words, heads, labels, strict=True)]
    if any(head not in _NONE for head in heads):
      rows = [row for row in rows if row[1] not in _NONE]
    ranges += len(words) - len(rows)
    empty += not rows
    if rows:
      found.append(_sentence(rows, where, number))
  if empty:
    console.log(f"{source}: rows without words, left out: {empty:,}")
  if ranges:
    console.log(
      f"{source}: {counted(ranges, 'word')} without a head beside others, left "
      "out, as tokens of several words"
    )
  if not found:
    raise DataError(f"{source}: there are no words; expected {_SUCH_AS}.")
  return found


def _sentence(
  rows: Sequence[tuple[Any, Any, Any]], where: str, number: int
) -> conllu.Example:
  for word, _, _ in rows:
    if not isinstance(word, str) or not word.strip():
      raise DataError(
        f"{where}: the word {word!r} is empty or no text; expected {_SUCH_AS}."
      )
  heads, labels = conllu.read_tree(
    [
      (where, "_" if head in _NONE else str(head), str(label))
      for _, head, label in rows
    ]
  )
  return conllu.of_words([word for word, _, _ in rows])._replace(
    heads=heads, labels=labels, lines=(number,) * len(rows), where=where
  )


def _list(
  fields: Mapping[str, Any], names: Sequence[str], where: str
) -> list[Any] | None:
  """Returns the first of these fields that is there and not null, or None."""
  for name in names:
    value = fields.get(name)
    if value is not None and not isinstance(value, list):
      raise DataError(
        f"{where}: {name!r} is {str(value)[:40]!r}; expected a list, as in "
        f"{_SUCH_AS}."
      )
    if value is not None:
      return value
  return None
