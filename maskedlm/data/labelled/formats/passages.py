"""Retrieval: a query, its right passage, and wrong ones.

Sources are tables with named columns (data/labelled/tables.py), or SQuAD files,
in which a question's passage is the paragraph that answers it. The forms of
rows, as sentence-transformers names them:

  pair, triplet, n-tuple  query, passage and perhaps columns of wrong passages
  labeled-pair            query, passage and label: 1 if it is right, 0 if wrong
  labeled-list            query, a list of passages, and a list of labels
  n-tuple with scores     a list, by a teacher: of the passage, each wrong one

The column of labels is `label`, or the one that task.label names; others that
may say which passages are wrong are refused. The wrong passages of a query's
labels are those of each of its right ones.
"""

import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bad_rows, tables, tfds_rows
from maskedlm.data.labelled.formats import squad
from maskedlm.data.labelled.labels import NO_LABEL, NO_NUMBER, TRUTHS
from maskedlm.data.labelled.lines import read_head
from maskedlm.data.labelled.objects import as_list, encodable
from maskedlm.runtime.console import log

# Usual names of columns on the Hugging Face Hub; the first one present is used.
QUERY_COLUMNS = ("query", "question", "anchor")
PASSAGE_COLUMNS = (
  *("passage", "passages", "positive", "positives", "pos"),
  *("context", "answer"),
)
NEGATIVE_COLUMN = re.compile(r"(hard_?)?neg(ative)?s?(_?\d+)?", re.IGNORECASE)
LABEL_COLUMN = "label"
SCORES = "scores"  # Of a passage and its wrong ones, by a teacher.
NO_COLUMN = "none"  # The value of task.label if no column has labels.
# Columns that may say whether a row's passage is right, or how good it is.
_MAYBE_LABELS = re.compile(
  r"labels?|relevan(ce|t)|rel|is_(relevant|positive|correct|selected|answer"
  r"|duplicate)|target|gold|qrel|scores?|similarity",
  re.IGNORECASE,
)
_OTHER_NEGATIVES = re.compile(
  r"(hard_?)?neg(ative)?s?_(?!(\w+_)?scores?$)\w+", re.IGNORECASE
)
_ID = re.compile(r"(.*_)?((doc)?ids?|idx|index)", re.IGNORECASE)
_IMPOSSIBLE = "is_impossible"  # SQuAD's: the context has no answer.
_SQUAD = re.compile(rb'"(paragraphs|qas)"\s*:')  # In a file's first bytes.


class Example(NamedTuple):
  """A query, and passages that may answer it."""

  query: str  # "" if the passages are only to be searched.
  passages: tuple[str, ...]  # At least one.
  is_gold: bool = True  # Whether the first passage is right, and others wrong.
  where: str = ""  # FILE:LINE.
  scores: tuple[float, ...] = ()  # A teacher's, of each passage; or none.


class Columns(NamedTuple):
  """Names of columns; the first one that a row has is used."""

  query: Sequence[str] = QUERY_COLUMNS
  passage: Sequence[str] = PASSAGE_COLUMNS
  label: str = ""  # "": LABEL_COLUMN, in rows that have it; or NO_COLUMN.


class _Row(NamedTuple):
  query: str
  # Each passage, and whether it is right; None for no label, or no answer.
  passages: list[tuple[str, bool | None]]
  wrong: list[str]  # Of each right passage of the row.
  where: str
  scores: tuple[float, ...] = ()  # Of the passage, and of each wrong one.

  def with_label(self, label: bool) -> list[str]:
    """Returns the passages that have this label."""
    return [text for text, truth in self.passages if truth is label]


def read_examples(
  source: str, columns: Columns, *, header: Sequence[str] = ()
) -> list[Example]:
  """Reads the examples of a table, or of SQuAD as a .json file.

  A column may hold a list: of right passages, each of which makes an example,
  or of wrong ones, in columns that match NEGATIVE_COLUMN. Blank passages of a
  list are skipped; a query may be blank. SQuAD's questions without an answer
  are left out. Passages that a label calls wrong belong to their query; if it
  has no right one, they are left out, and counted.

  `header` has the names of all columns, for a table without a header line.

  Raises:
    DataError: see tables.read_records and squad.read_questions; a column is
      missing, or may say which passages are wrong, but is not read; a passage
      is empty, a list contains something other than text, or a label is neither
      1 nor 0.
  """
  is_json = pathlib.Path(source).suffix.lower() == ".json"
  is_json &= not tfds_rows.is_source(source)
  if is_json and _SQUAD.search(read_head(pathlib.Path(source))):
    return [
      Example(e.question, (e.context,), where=e.where)
      for e in squad.read_questions(source, allow_impossible=True)
      if e.answers != ()
    ]
  unread: dict[str, set] = {}  # Column -> its truth values.

  def read(record: tables.Record) -> _Row:
    _note_unread(record, columns, unread)
    return _row(record, columns)

  rows = [*bad_rows.map_rows(read, tables.read_records(source, header=header))]
  for name, truths in unread.items():
    if truths == {True, False}:
      raise _unread_label(source, name, "a column of 1 and 0")
  if unread:
    log(
      f"{source}: columns that are not read: {', '.join(map(repr, unread))}; "
      "wrong passages are read from negative, negatives, negative_1, ..."
    )
  return _join_rows(rows, source)


def _note_unread(
  record: tables.Record, columns: Columns, unread: dict[str, set]
) -> None:
  """Adds the truth values of columns that are not read; None for others."""
  read = {*columns.query, *columns.passage, _IMPOSSIBLE}
  read.add(columns.label or LABEL_COLUMN)
  has_labels = columns.label or LABEL_COLUMN in record.fields
  for name, value in record.fields.items():
    if name in read or NEGATIVE_COLUMN.fullmatch(name) or _ID.fullmatch(name):
      continue
    if name == SCORES and any(map(NEGATIVE_COLUMN.fullmatch, record.fields)):
      continue
    if _OTHER_NEGATIVES.fullmatch(name):
      raise DataError(
        f"{record.where}: the column {name!r} is not read; expected wrong "
        "passages in negative, negatives, hard_negatives or negative_1, ..."
      )
    if not has_labels and _MAYBE_LABELS.fullmatch(name):
      raise _unread_label(record.where, name, "labels by its name")
    truth = TRUTHS.get(tables.as_text(value).strip().lower())
    unread.setdefault(name, set()).add(None if has_labels else truth)


def _unread_label(where: str, name: str, kind: str) -> DataError:
  return DataError(
    f"{where}: the column {name!r}, {kind}, is not read; if it says which "
    f"passages are right, --config.task.label={name}; if not, "
    f"--config.task.label={NO_COLUMN}, and each row's passage is right."
  )


def _join_rows(rows: Sequence[_Row], source: str) -> list[Example]:
  """Returns an example for each right passage; reports the other ones."""
  of_query: dict[str, list[str]] = {}  # Its passages with label 0.
  for row in rows:
    known = of_query.setdefault(row.query, [])
    known += [text for text in row.with_label(False) if text not in known]
  examples = []
  for row in rows:
    right = row.with_label(True)
    if both := {*right} & {*of_query[row.query]}:
      raise DataError(
        f"{row.where}: the passage {both.pop()!r:.40} is right here, but has "
        "label 0 for the same query in another row; expected one of them."
      )
    wrong = (*row.wrong, *of_query[row.query])
    scores = () if of_query[row.query] else row.scores
    examples += [
      Example(row.query, (passage, *wrong), where=row.where, scores=scores)
      for passage in right
    ]
  answered = {example.query for example in examples}
  alone = [row for row in rows if row.query not in answered]
  lost = sum(len(row.with_label(False)) for row in alone)
  used = sum(len(row.with_label(False)) for row in rows) - lost
  unlabelled = sum(truth is None for row in rows for _, truth in row.passages)
  if used:
    log(f"{source}: {counted(used, 'wrong passage')}, with label 0")
  if lost:
    log(
      f"{source}: {counted(lost, 'passage')} with label 0 left out, as the "
      f"query has no right one, such as {alone[0].where}"
    )
  if unlabelled:
    log(
      f"{source}: {counted(unlabelled, 'passage')} without a label, or "
      "an answer, left out"
    )
  if not examples:
    raise DataError(
      f"{source}: no passage has label 1; expected a right one for each query."
    )
  return examples


def _row(record: tables.Record, columns: Columns) -> _Row:
  query = tables.get_field(record, *columns.query)
  if query.strip():
    query = tables.get_text(record, *columns.query)
  passages = _list(tables.get_value(record, *columns.passage), record)
  if passages is None:
    passages = [tables.get_text(record, *columns.passage)]
  if not "".join(passages).strip():
    raise DataError(f"{record.where}: the passage is empty; expected a text.")
  truths = [None if _is_unanswered(record.fields) else True] * len(passages)
  label = columns.label or LABEL_COLUMN
  is_needed = query.strip() and columns.label not in ("", NO_COLUMN)
  if label in record.fields or is_needed:
    truths = _truths(record, label, len(passages))
  wrong = []
  for name, value in record.fields.items():
    if NEGATIVE_COLUMN.fullmatch(name) and value is not None:
      texts = _list(value, record)
      wrong += [tables.as_text(value)] if texts is None else texts
  wrong = [encodable(text) for text in wrong if text.strip()]
  pairs = zip(map(encodable, passages), truths, strict=True)
  kept = [pair for pair in pairs if pair[0].strip()]
  return _Row(
    query if query.strip() else "",
    kept,
    wrong,
    record.where,
    _scores(record, len(kept), len(wrong)) if wrong else (),
  )


def _scores(record: tables.Record, right: int, wrong: int) -> tuple[float, ...]:
  """Returns a teacher's scores of a row's passage and its wrong ones, or ()."""
  if SCORES not in record.fields:
    return ()
  items = as_list(record.fields[SCORES])
  try:
    scores = [*map(float, items or ())]
  except (TypeError, ValueError):
    scores = []
  if right > 1 or len(scores) != 1 + wrong or not np.isfinite(scores).all():
    raise DataError(
      f"{record.where}: {SCORES} is {record.fields[SCORES]!s:.40}; expected a "
      "list of numbers, a teacher's score of the passage and of each of its "
      f"{counted(wrong, 'wrong passage')}."
    )
  return tuple(scores)


def _is_unanswered(fields: Mapping[str, Any]) -> bool:
  """Returns whether a row of SQuAD 2.0 has no answer in its context."""
  answers = fields.get("answers", "unknown")
  texts = answers.get("text") if isinstance(answers, dict) else answers
  is_impossible = tables.as_text(fields.get(_IMPOSSIBLE)).lower()
  return texts == [] or TRUTHS.get(is_impossible, False)


def _truths(record: tables.Record, name: str, count: int) -> list[bool | None]:
  """Returns whether each passage of a row is right; None for no label."""
  value = tables.get_value(record, name)
  items = as_list(value)
  labels = [value] * count if items is None else items
  otherwise = (
    f"If the column says something else: --config.task.label={NO_COLUMN}, and "
    "each row's passage is right."
  )
  if len(labels) != count:
    raise DataError(
      f"{record.where}: {name} has {counted(len(labels), 'value')} for "
      f"{counted(count, 'passage')}; expected one for each. {otherwise}"
    )
  truths: list[bool | None] = []
  for item in labels:
    text = tables.as_text(item).strip()
    if text.lower() not in TRUTHS and text not in (*NO_LABEL, *NO_NUMBER):
      raise DataError(
        f"{record.where}: {name} is {text!r:.40}; expected 1 if the passage is "
        "right, 0 if it is wrong (`finetune similarity` learns from grades). "
        f"{otherwise}"
      )
    truths.append(TRUTHS.get(text.lower()))
  return truths


def _list(value: Any, record: tables.Record) -> list[str] | None:
  """Returns the list of texts in a field; None if it is no list."""
  items = as_list(value)
  is_written = isinstance(value, str) and re.fullmatch(
    r"\[\s*'.*'\s*\]", value.strip(), re.DOTALL
  )
  if items is None and not (is_written or isinstance(value, dict)):
    return None
  if items is None or not all(isinstance(text, str) for text in items):
    raise DataError(
      f"{record.where}: {tables.as_text(value)[:40]!r}; expected a text, or a "
      "list of texts, of JSON (json.dumps writes it)."
    )
  return items


def parse_line(line: str, columns: Columns) -> Example:
  """Parses a line of predict's input: query and passages, separated by tabs.

  The line may also be {"query": "...", "passages": ["...", ...]}, or have the
  names of the columns.

  Raises:
    DataError: the query or the passages are missing.
  """
  passages: Any
  if tables.is_object(line):
    fields = tables.parse_record(line).fields
    aliases = (*columns.query, "query"), (*columns.passage, "passages")
    query, value = (
      next((fields[x] for x in names if x in fields), None) for names in aliases
    )
    passages = as_list(value) or [value]
  else:
    query, *passages = line.split("\t")
  texts = [query, *(passages if isinstance(passages, list) else ())]
  if not query or len(texts) < 2 or not all(isinstance(x, str) for x in texts):
    raise DataError(
      f"input {line[:40]!r}: expected the query and at least one passage, with "
      'tabs between them, or {"query": "...", "passages": ["...", ...]}.'
    )
  query, *passages = map(encodable, texts)
  return Example(query, tuple(passages), is_gold=False)
