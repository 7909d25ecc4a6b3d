"""Retrieval's files -> examples: a query, its right passage, wrong ones.

Tables of named columns (tables.py), and SQuAD's files: a question's passage is
the paragraph that answers it.
"""

import json
import pathlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.corpus.tokenizer_train import without_surrogates
from maskedlm.finetune import squad, tables, tfds_source
from maskedlm.finetune.application import DataError

# Names that such columns have on the Hugging Face Hub; the first one counts.
QUERY = ("query", "question", "anchor")
PASSAGE = ("passage", "positive", "context", "answer")
NEGATIVE = re.compile(r"negatives?(_?\d+)?")


class Example(NamedTuple):
  """A query, and passages that may answer it."""

  query: str
  passages: tuple[str, ...]  # At least one.
  is_gold: bool = True  # The first passage is the right one, no other is.
  where: str = ""  # FILE:LINE.


def read(
  source: str, *, query: Sequence[str], passage: Sequence[str]
) -> list[Example]:
  """The examples of a table, or of a .json file or "tfds:..." of SQuAD.

  Columns that NEGATIVE matches hold wrong passages: one each, or, in .jsonl and
  .parquet, a list. Questions that nobody can answer are left out.

  Args:
    source: the file.
    query, passage: names of columns; of each the first that a row has.

  Raises:
    DataError: what tables.iterate or squad.read finds, a missing column, an
      empty query or passage.
  """
  suffix = pathlib.Path(source).suffix.lower()
  if suffix == ".json" or source.startswith(tfds_source.PREFIX):
    asked = squad.read(source, allow_impossible=True, fix_offsets=True)
    return [
      Example(e.question, (e.context,), where=e.where)
      for e in asked
      if e.answers != ()
    ]
  return [_example(record, query, passage) for record in tables.iterate(source)]


def parse(line: str) -> Example:
  """A line of predict's input: the query and passages, between tabs.

  Or {"query": "...", "passages": ["...", ...]}.

  Raises:
    DataError: neither.
  """
  expected = (
    "expected the query and one passage or more, with tabs between them, or "
    '{"query": "...", "passages": ["...", ...]}.'
  )
  if line.startswith("{"):
    fields = tables.json_fields(line, "input")
    passages = _list(fields.get("passages", ""))
    query = fields.get("query", "")
  else:
    query, *passages = map(without_surrogates, line.split("\t"))
  if not query or not passages:
    raise DataError(f"input {line[:40]!r}: {expected}")
  return Example(query, tuple(passages), is_gold=False)


def _example(
  record: tables.Record, query: Sequence[str], passage: Sequence[str]
) -> Example:
  texts = tables.field(record, *query), tables.field(record, *passage)
  for names, text in zip((query, passage), texts, strict=True):
    if not text.strip():
      raise DataError(
        f"{record.where}: the {names[0]} is empty; expected a text."
      )
  wrong: list[str] = []
  for name, value in record.fields.items():
    if NEGATIVE.fullmatch(name) and value.strip():
      listed = _list(value)
      wrong += [value] if listed is None else listed
  return Example(texts[0], (texts[1], *wrong), where=record.where)


def _list(text: str) -> list[str] | None:
  """A JSON list of strings; None for anything else."""
  try:
    found = json.loads(text)
  except ValueError:
    return None
  if isinstance(found, list) and all(isinstance(x, str) for x in found):
    return list(map(without_surrogates, found))
  return None
