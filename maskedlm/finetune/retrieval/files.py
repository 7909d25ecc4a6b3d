"""Reads retrieval data: a query, its right passage, and wrong ones.

Sources are tables with named columns (data/labelled/tables.py), or SQuAD files,
in which a question's passage is the paragraph that answers it. The forms of
rows, as sentence-transformers names them:

  pair, triplet, n-tuple  query, passage and perhaps columns of wrong passages
  labeled-pair            query, passage and label: 1 if it is right, 0 if wrong
  labeled-list            query, a list of passages, and a list of labels

The wrong passages of a query's labels are those of each of its right ones.
"""

import ast
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.core.parse_json import parse_json
from maskedlm.data.labelled import tables, tfds_rows
from maskedlm.data.labelled.labels import NO_LABEL, NO_NUMBER
from maskedlm.data.labelled.lines import read_head
from maskedlm.data.tokenizers.training import replace_surrogates
from maskedlm.finetune.question_answering import squad
from maskedlm.runtime.console import log

# Usual names of columns on the Hugging Face Hub; the first one present is used.
QUERY_COLUMNS = ("query", "question", "anchor")
PASSAGE_COLUMNS = (
  "passage",
  "passages",
  "positive",
  "positives",
  "pos",
  "context",
  "answer",
)
NEGATIVE_COLUMN = re.compile(r"(hard_?)?neg(ative)?s?(_?\d+)?")
# Columns that say whether a row's passage is right, or how good it is.
LABEL_COLUMNS = (
  *("label", "labels", "relevance", "relevant", "rel"),
  *("is_relevant", "is_positive", "is_correct", "is_selected", "is_answer"),
  *("is_duplicate", "target", "gold", "qrel", "score", "scores", "similarity"),
)
_OTHER_NEGATIVES = re.compile(
  r"(hard_?)?neg(ative)?s?_(?!(\w+_)?scores?$)\w+", re.IGNORECASE
)
_ID = re.compile(r"(.*_)?((doc)?ids?|idx|index)", re.IGNORECASE)
_IMPOSSIBLE = "is_impossible"  # SQuAD's: the context has no answer.
_SQUAD = re.compile(rb'"(paragraphs|qas)"\s*:')  # In a file's first bytes.
NO_COLUMN = "none"  # The value of task.label for which no column is one.
_TRUTHS = {"1": True, "1.0": True, "true": True}
_TRUTHS |= {"0": False, "0.0": False, "false": False}


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
  label: Sequence[str] = LABEL_COLUMNS,
  header: Sequence[str] = (),
) -> list[Example]:
  """Reads the examples of a table, or of SQuAD as a .json file.

  A column may hold a list: of right passages, each of which makes an example,
  or of wrong ones, in columns that match NEGATIVE_COLUMN. Blank passages of a
  list are skipped; a query may be blank. SQuAD's questions without an answer
  are left out. Passages that a label calls wrong belong to their query; if it
  has no right one, they are left out, and counted.

  Args:
    source: the file.
    query, passage, label: names of columns; the first one that a row has is
      used. Without a label, all passages are right.
    header: names of all columns, for a table without a header line.

  Raises:
    DataError: see tables.read_records and squad.read_questions; a column is
      missing, a passage is empty, a list contains something other than text, or
      a label is neither 1 nor 0.
  """
  is_json = pathlib.Path(source).suffix.lower() == ".json"
  is_json &= not tfds_rows.is_source(source)
  if is_json and _SQUAD.search(read_head(pathlib.Path(source))):
    questions = squad.read_questions(
      source, allow_impossible=True, fix_offsets=True
    )
    return [
      Example(e.question, (e.context,), where=e.where)
      for e in questions
      if e.answers != ()
    ]
  odd: tables.Odd = {}
  rows, unread = [], {}  # Column -> its truth values.
  for record in tables.read_records(source, header=header):
    rows.append(_row(record, query, passage, label, odd))
    if label and not {*label} & {*record.fields}:
      _note_unread(record, {*query, *passage, _IMPOSSIBLE}, unread)
  tables.report_odd(odd)
  _check_unread(unread, source)
  return _join_rows(rows, source)


def _note_unread(
  record: tables.Record, known: set[str], unread: dict[str, set]
) -> None:
  """Adds the truth values of columns that are not read; None for others."""
  for name, value in record.fields.items():
    if name in known or NEGATIVE_COLUMN.fullmatch(name) or _ID.fullmatch(name):
      continue
    if _OTHER_NEGATIVES.fullmatch(name):
      raise DataError(
        f"{record.where}: the column {name!r} is not read; expected wrong "
        "passages in negative, negatives, hard_negatives or negative_1, ..."
      )
    truth = _TRUTHS.get(tables.as_text(value).strip().lower())
    unread.setdefault(name, set()).add(truth)


def _check_unread(unread: Mapping[str, set], source: str) -> None:
  """Checks that no column that is not read may say which passages are wrong.

  Raises:
    DataError: a column has 1 and 0, and nothing else.
  """
  for name, truths in unread.items():
    if truths == {True, False}:
      raise DataError(
        f"{source}: the column {name!r} of 1 and 0 is not read; if it says "
        f"which passages are right, --config.task.label={name}; if not, "
        f"--config.task.label={NO_COLUMN}, and each row's passage is right."
      )


class _Row(NamedTuple):
  """The passages of a row."""

  query: str
  right: list[str]
  wrong: list[str]  # Of each right one of the row.
  labelled_wrong: list[str]  # Of each right one of the query.
  unlabelled: int  # Passages whose label means none, or without an answer.
  where: str


def _join_rows(rows: Sequence[_Row], source: str) -> list[Example]:
  """Returns an example for each right passage; reports the other ones."""
  of_query: dict[str, list[str]] = {}
  for row in rows:
    known = of_query.setdefault(row.query, [])
    known += [text for text in row.labelled_wrong if text not in known]
  for row in rows:
    if both := {*row.right} & {*of_query[row.query]}:
      raise DataError(
        f"{row.where}: the passage {both.pop()!r:.40} is right here, but has "
        "label 0 for the same query in another row; expected one of them."
      )
  examples = [
    Example(
      row.query,
      (text, *row.wrong, *of_query[row.query]),
      where=row.where,
    )
    for row in rows
    for text in row.right
  ]
  answered = {example.query for example in examples}
  alone = [row for row in rows if row.query not in answered]
  lost = sum(len(row.labelled_wrong) for row in alone)
  wrong = sum(len(row.labelled_wrong) for row in rows) - lost
  if wrong:
    log(f"{source}: {counted(wrong, 'wrong passage')}, with label 0")
  if lost:
    log(
      f"{source}: {counted(lost, 'passage')} with label 0 left out, as the "
      f"query has no right one, such as {alone[0].where}"
    )
  if unlabelled := sum(row.unlabelled for row in rows):
    log(
      f"{source}: {counted(unlabelled, 'passage')} without a label, or "
      "an answer, left out"
    )
  if not examples:
    raise DataError(
      f"{source}: no passage has label 1; expected a right one for each query."
    )
  return examples


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
  passages: Any
  if tables.is_object(line):
    record = tables.parse_record(line)
    query = record.fields.get("query")
    passages = record.fields.get("passages")
  else:
    query, *passages = line.split("\t")
  if (
    not isinstance(query, str)
    or not query
    or not isinstance(passages, list)
    or not passages
    or not all(isinstance(x, str) for x in passages)
  ):
    raise DataError(f"input {line[:40]!r}: {expected}")
  query, *passages = map(replace_surrogates, (query, *passages))
  return Example(query, tuple(passages), is_gold=False)


def _row(
  record: tables.Record,
  query: Sequence[str],
  passage: Sequence[str],
  label: Sequence[str],
  odd: tables.Odd,
) -> _Row:
  query_value = tables.get_value(record, *query)
  query_text = ""
  if query_value is not None and tables.as_text(query_value).strip():
    query_text = tables.get_text(record, *query, odd=odd)
  name = next((x for x in passage if x in record.fields), passage[0])
  value = tables.get_value(record, *passage)
  found = _list(value)
  if found is None:
    found = [tables.get_text(record, name, odd=odd)]
  _check_texts(found, record, value)
  right, labelled_wrong, unlabelled = found, [], 0
  if _is_unanswered(record.fields):
    right, unlabelled = [], len(found)
  named = [x for x in label if x in record.fields and x != name]
  if named:
    truths = _truths(record, named[0], len(found))
    pairs = [*zip(found, truths, strict=True)]
    right = [text for text, is_it in pairs if is_it]
    labelled_wrong = [text for text, is_it in pairs if is_it is False]
    unlabelled = truths.count(None)
  wrong = []
  for column, value in record.fields.items():
    if NEGATIVE_COLUMN.fullmatch(column) and value is not None:
      texts = _list(value)
      texts = [tables.as_text(value)] if texts is None else texts
      _check_texts(texts, record, value)
      wrong += texts
  if not _texts(found):
    raise DataError(f"{record.where}: the passage is empty; expected a text.")
  return _Row(
    query_text,
    _texts(right),
    _texts(wrong),
    _texts(labelled_wrong),
    unlabelled,
    record.where,
  )


def _is_unanswered(fields: Mapping[str, Any]) -> bool:
  """Returns whether a row of SQuAD 2.0 has no answer in its context."""
  answers = fields.get("answers", "unknown")
  texts = answers.get("text") if isinstance(answers, dict) else answers
  is_impossible = tables.as_text(fields.get(_IMPOSSIBLE)).lower()
  return texts == [] or _TRUTHS.get(is_impossible, False)


def _truths(record: tables.Record, name: str, count: int) -> list[bool | None]:
  """Returns whether each passage of a row is right; None for no label.

  Raises:
    DataError: a label is neither 1 nor 0, or there is not one for each passage.
  """
  value = record.fields[name]
  found = _list(value, (int, float, str))
  labels = [value] * count if found is None else found
  if len(labels) != count:
    raise DataError(
      f"{record.where}: {name} has {counted(len(labels), 'value')} for "
      f"{counted(count, 'passage')}; expected one for each. If the column says "
      f"something else: --config.task.label={NO_COLUMN}, and each row's "
      "passage is right."
    )
  truths: list[bool | None] = []
  for item in labels:
    text = tables.as_text(item).strip()
    if text.lower() not in _TRUTHS and text not in (*NO_LABEL, *NO_NUMBER):
      raise DataError(
        f"{record.where}: {name} is {text!r:.40}; expected 1 if the passage is "
        "right, 0 if it is wrong. If the column says something else: "
        f"--config.task.label={NO_COLUMN}, and each row's passage is right."
      )
    truths.append(_TRUTHS.get(text.lower()))
  return truths


def _check_texts(
  found: Sequence[Any], record: tables.Record, value: Any
) -> None:
  """Raises DataError if a list contains something other than text."""
  if not all(isinstance(text, str) for text in found):
    raise DataError(
      f"{record.where}: {tables.as_text(value)[:40]!r}; expected a text, or a "
      "list of texts."
    )


def _texts(found: Sequence[str]) -> list[str]:
  return [replace_surrogates(text) for text in found if text.strip()]


def _list(value: Any, kinds: type | tuple[type, ...] = str) -> list | None:
  """Returns the list in a field; None if there is none.

  pandas writes a list into a .csv file as ['a', 'b']; a text is taken as one if
  all of its items are of these kinds.
  """
  if isinstance(value, list):
    return value
  if not isinstance(value, str) or not value.strip().startswith("["):
    return None
  for parse in (parse_json, ast.literal_eval):
    try:
      found = parse(value.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
      continue
    is_list = isinstance(found, list) and found
    if is_list and all(isinstance(x, kinds) for x in found):
      return found
  return None
