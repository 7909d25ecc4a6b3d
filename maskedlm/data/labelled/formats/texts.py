"""Texts and pairs of texts, with a label or a number: named columns.

A FileLayout names the columns of a file that data/labelled/tables.py reads;
glue.py has those of GLUE. A label is a text or a number; label_lists.py reads
several.
"""

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError, did_you_mean
from maskedlm.data.labelled import bad_rows, fields, tables
from maskedlm.data.labelled.labels import NO_LABEL
from maskedlm.runtime.console import log


class FileLayout(NamedTuple):
  """The columns and labels of a labelled file, and its metric."""

  text: tuple[str, ...]  # Names of the column; the first one present is used.
  text_b: tuple[str, ...] = ()  # () = single texts.
  alone: bool = False  # Rows without text_b are allowed: single texts.
  label: tuple[str, ...] = ("label",)
  labels: tuple[str, ...] = ()  # All allowed labels; () = any.
  aliases: Mapping[str, str] = {}  # TFDS's label -> GLUE's.
  # Values that mean no gold label, unless they are in `labels`.
  unlabelled: tuple[str, ...] = NO_LABEL
  regression: bool = False  # The label is a number.
  header: tuple[str, ...] = ()  # Columns of files without a header line.
  language: str = ""  # Rows to read of several languages (XNLI); "" = all.
  # Ragged rows are skipped, and empty texts are read, with a warning.
  corrupt_rows: bool = False
  best: str = "accuracy"  # The metric that chooses the best checkpoint.


class Example(NamedTuple):
  """A text or a pair of texts, and its label."""

  text: str
  text_b: str | None = None
  label: Any = None  # A str, a float, or a tuple of several labels.
  where: str = ""  # FILE:LINE.
  no_label: str = ""  # The error message if a missing label is needed.


# (record, layout) -> the label, or None and why there is none.
ReadLabel = Callable[[tables.Record, FileLayout], tuple[Any, str]]

# Usual names of the texts of a pair.
FIRST_TEXTS = ("text", "text1", "sentence1", "premise", "question1")
SECOND_TEXTS = (
  *("text_b", "text_pair", "text2", "sentence2", "hypothesis"),
  *("question2", "sentence_b"),
)


def one_label(
  record: tables.Record, layout: FileLayout
) -> tuple[str | float | None, str]:
  """Returns a row's label, or None and why there is none.

  Raises:
    DataError: the label is a list, not one of the layout's, or not a number.
  """
  name = next((x for x in layout.label if x in record.fields), None)
  if name is None:
    return None, no_column(record, layout)
  value = record.fields[name]
  if isinstance(value, list | dict):
    raise DataError(
      f"{record.where}: the {name} is {tables.as_text(value):.60}; "
      "expected one label; maskedlm finetune multi_label reads several."
    )
  label = tables.as_text(value).strip()
  if label in layout.unlabelled and label not in layout.labels:
    return None, means_none(record, label)
  label = layout.aliases.get(label, label)
  if layout.regression:
    return _number(label, record.where), ""
  if layout.labels and label not in layout.labels:
    raise DataError(
      f"{record.where}: label {label!r}; expected one of "
      f"{', '.join(layout.labels)}."
    )
  return label, ""


def no_column(record: tables.Record, layout: FileLayout) -> str:
  """Returns why a row without the label's column has no label."""
  return tables.missing_column(record, layout.label, "expected a label here.")


def means_none(record: tables.Record, label: str) -> str:
  """Returns why a row with a mark has no label."""
  return f"{record.where}: label {label!r} means no label; expected one here."


def read_examples(
  source: str, layout: FileLayout, read_label: ReadLabel = one_label
) -> list[Example]:
  """Reads the examples of a source that tables.py reads.

  Labels are None if there is no such column, as in a test set. If the layout
  has a language and the file a column "language", other rows are skipped.

  Raises:
    DataError: see tables.read_records and read_label; a text column is missing,
      or no row has the language.
  """

  def leave_out(error: DataError) -> None:
    log(f"left out: {error}")

  ragged = leave_out if layout.corrupt_rows else bad_rows.refuse
  records = tables.read_records(source, header=layout.header, ragged=ragged)
  if layout.language:
    records = _in_language(records, source, layout.language)

  def read(record: tables.Record) -> Example:
    text_b = None
    text = _text(record, layout.text, layout)
    if _is_pair(record, layout):
      text_b = _text(record, layout.text_b, layout)
    label, why = read_label(record, layout)
    return Example(text, text_b, label, record.where, why)

  first = next(records)
  _report_second_text(first, layout)
  return [*bad_rows.map_rows(read, itertools.chain([first], records))]


def _in_language(
  records: Iterable[tables.Record], source: str, language: str
) -> Iterator[tables.Record]:
  languages: Counter[str] = Counter()
  has_column = False
  for record in records:
    has_column |= "language" in record.fields
    row_language = tables.as_text(record.fields.get("language", language))
    languages[row_language] += 1
    if row_language == language:
      yield record
  num_others = languages.total() - languages[language]
  if not languages[language]:
    raise DataError(
      f"{source}: no row has the language {language!r}"
      f"{did_you_mean(language, languages)}; known: "
      f"{', '.join(sorted(languages))}."
    )
  if not has_column:
    log(f"{source}: no column 'language'; all rows are taken as {language!r}")
  if num_others:
    log(f"{source}: {counted(num_others, 'row')} in other languages left out")


def _report_second_text(record: tables.Record, layout: FileLayout) -> None:
  """Reports which column is, or may be and is not, the second text of pairs."""
  read = [name for name in layout.text_b if name in record.fields]
  if layout.alone and read and read[0] != "text_b":
    log(f"{record.where}: the column {read[0]!r} is the second text of pairs")
  if unread := _unread_second_text(record, layout):
    if "text_b" in record.fields:
      raise DataError(f"{unread}; if not, rename it.")
    log(unread)


def _unread_second_text(record: tables.Record, layout: FileLayout) -> str:
  """Returns what to say of a column that may be the second text; or ""."""
  names = [name for name in SECOND_TEXTS if name in record.fields]
  if not names or {*layout.text_b} & {*record.fields}:
    return ""
  return (
    f"{record.where}: the column {names[0]!r} is not read; if the texts are "
    f"pairs, --config.task.text_b={names[0]}"
  )


def _text(
  record: tables.Record, names: Sequence[str], layout: FileLayout
) -> str:
  if layout.corrupt_rows and not tables.get_field(record, *names).strip():
    tables.count_odd(record, names[0], "are empty")
    return ""
  return tables.get_text(record, *names)


def _is_pair(record: tables.Record, layout: FileLayout) -> bool:
  """Tells whether a second text is expected in this row."""
  if not layout.alone:
    return bool(layout.text_b)
  names = {"text_b", *layout.text_b} & {*record.fields}
  return any(tables.get_field(record, name).strip() for name in names)


def _number(label: str, where: str) -> float:
  try:
    value = float(label if re.fullmatch(r"[-+.\deE]+", label) else "nan")
  except ValueError:
    value = float("nan")
  if not np.isfinite(value):
    raise DataError(
      f"{where}: score {label!r:.60} is not a number; expected one such as 3.8."
    )
  return value


# --- predict ---


def parse_line(line: str, layout: FileLayout) -> Example:
  """Parses a line of predict's input: a text, or two separated by a tab.

  A line may also be a JSON object with the names of the layout's columns, or
  with "text" and "text_b".

  Raises:
    DataError: the object lacks a text, half of a pair is missing, or a pair is
      given where a single text is expected.
  """
  if tables.is_object(line):
    record = tables.parse_record(line)
    text = _json_text(record, (*layout.text, "text"))
    if _is_pair(record, layout):
      return Example(text, _json_text(record, (*layout.text_b, "text_b")))
    if unread := _unread_second_text(record, layout):
      raise DataError(f"{unread}; if not, leave it out.")
    return Example(text)
  return split_line(line, layout)


def split_line(line: str, layout: FileLayout) -> Example:
  """Returns the text in a line, or the two with a tab between them.

  Raises:
    DataError: there are more or fewer texts than the layout has.
  """
  if not layout.text_b:
    return Example(line)
  parts = line.split("\t")
  if parts == [line] and layout.alone:
    return Example(line)
  filled = [*filter(str.strip, parts)]
  if len(parts) != 2 or len(filled) != 2:
    count = f"{len(filled)} texts" if len(filled) > 1 else "one text"
    raise DataError(
      f"input {line[:40]!r} is {count}, but this model takes pairs; expected "
      "two texts with a tab between them."
    )
  return Example(*parts)


def _json_text(record: tables.Record, names: Sequence[str]) -> str:
  if not {*names} & {*record.fields}:
    shown = f"input {json.dumps(record.fields)[:40]}"
    such_as = 'expected {"text": "..."}, with "text_b" for a pair.'
    raise DataError(fields.missing(shown, names[:1], record.fields, such_as))
  return tables.get_text(record, *names)


# --- Files of predictions ---


def write_predictions(labels: Sequence[str]) -> str:
  """Returns the text of a file: "index" and "prediction", a row for each."""
  lines = [f"{i}\t{label}" for i, label in enumerate(labels)]
  return "\n".join(["index\tprediction", *lines, ""])
