"""Reads retrieval data: a query, its right passage, and wrong ones.

Sources are tables with named columns (data/labelled/tables.py), or SQuAD files,
in which a question's passage is the paragraph that answers it.
"""

import json
import pathlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import tables, tfds_tables
from maskedlm.data.tokenizers.training import replace_surrogates
from maskedlm.finetune.question_answering import squad

# Usual names of columns on the Hugging Face Hub; the first one present is used.
QUERY_COLUMNS = ("query", "question", "anchor")
PASSAGE_COLUMNS = (
  "passage",
  "positive",
  "positives",
  "pos",
  "context",
  "answer",
)
NEGATIVE_COLUMN = re.compile(r"(hard_?)?neg(ative)?s?(_?\d+)?")


class Example(NamedTuple):
  """A query, and passages that may answer it."""

  query: str  # "" if the passages are only to be searched.
  passages: tuple[str, ...]  # At least one.
  is_gold: bool = True  # Whether the first passage is right, and others wrong.
  where: str = ""  # FILE:LINE.


def read_examples(
  source: str,
  *,
  query: Sequence[str],
  passage: Sequence[str],
  header: Sequence[str] = (),
) -> list[Example]:
  """Reads the examples of a table, or of SQuAD as a .json file or "tfds:...".

  In .jsonl and .parquet a column may hold a list: of right passages, each of
  which makes an example, or of wrong ones, in columns that match
  NEGATIVE_COLUMN. Blank passages are skipped; a query may be blank. SQuAD's
  questions without an answer are left out.

  Args:
    source: the file.
    query, passage: names of columns; the first one that a row has is used.
    header: names of all columns, for a table without a header line.

  Raises:
    DataError: see tables.read_records and squad.read_questions; a column is
      missing, a passage is empty, or a list contains something other than text.
  """
  suffix = pathlib.Path(source).suffix.lower()
  if suffix == ".json" or source.startswith(tfds_tables.PREFIX):
    questions = squad.read_questions(
      source, allow_impossible=True, fix_offsets=True
    )
    return [
      Example(e.question, (e.context,), where=e.where)
      for e in questions
      if e.answers != ()
    ]
  return [
    example
    for record in tables.read_records(source, header=header)
    for example in _examples(record, query, passage)
  ]


def parse_line(line: str) -> Example:
  """Parses a line of predict's input: query and passages, separated by tabs.

  The line may also be {"query": "...", "passages": ["...", ...]}.

  Raises:
    DataError: the query or the passages are missing.
  """
  expected = (
    "expected the query and at least one passage, with tabs between them, or "
    '{"query": "...", "passages": ["...", ...]}.'
  )
  if line.startswith("{"):
    fields = tables.parse_json_fields(line, "input")
    query, passages = fields.get("query", ""), _list(fields.get("passages", ""))
  else:
    query, *passages = line.split("\t")
  if not query or not passages or not all(isinstance(x, str) for x in passages):
    raise DataError(f"input {line[:40]!r}: {expected}")
  query, *passages = map(replace_surrogates, (query, *passages))
  return Example(query, tuple(passages), is_gold=False)


def _examples(
  record: tables.Record, query: Sequence[str], passage: Sequence[str]
) -> list[Example]:
  query_text = tables.get_field(record, *query)
  query_text = query_text if query_text.strip() else ""
  right = _texts(record, tables.get_field(record, *passage))
  if not right:
    raise DataError(f"{record.where}: the passage is empty; expected a text.")
  wrong = [
    text
    for name, value in record.fields.items()
    if NEGATIVE_COLUMN.fullmatch(name)
    for text in _texts(record, value)
  ]
  return [
    Example(query_text, (text, *wrong), where=record.where) for text in right
  ]


def _texts(record: tables.Record, value: str) -> list[str]:
  """Returns the texts in a field, which has one text or a list.

  Raises:
    DataError: the list contains something other than text.
  """
  found: list | None = None
  if pathlib.Path(record.path).suffix.lower() in tables.OBJECTS:
    found = _list(value)
  found = [value] if found is None else found
  if not all(isinstance(text, str) for text in found):
    raise DataError(
      f"{record.where}: {value[:40]!r}; expected a text, or a list of texts."
    )
  return [replace_surrogates(text) for text in found if text.strip()]


def _list(text: str) -> list | None:
  """Returns the list in this JSON text; None if it is not a list."""
  try:
    found = json.loads(text)
  except ValueError:
    return None
  return found if isinstance(found, list) else None
