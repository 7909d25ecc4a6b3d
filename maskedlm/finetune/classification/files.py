"""Reads labelled texts and pairs for classification, in a given layout.

A layout (glue.FileLayout) names the columns; data/labelled/tables.py reads
them.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError, did_you_mean
from maskedlm.data.labelled import tables
from maskedlm.finetune.classification.glue import FileLayout
from maskedlm.runtime.console import log


class Example(NamedTuple):
  """A text or a pair of texts, and its label."""

  text: str
  text_b: str | None = None
  label: str | float | None = None
  where: str = ""  # FILE:LINE.
  no_label: str = ""  # The error message if a missing label is needed.


# Usual names of the second text of a pair.
_SECOND_TEXTS = ("text_b", "text_pair", "text2", "sentence2", "hypothesis")
_SECOND_TEXTS += ("question2", "sentence_b")


def read_examples(
  source: str,
  layout: FileLayout,
  prepare: Callable[[tables.Record], tables.Record] = lambda record: record,
) -> list[Example]:
  """Reads the examples of a source that tables.py reads.

  Labels are None if there is no such column, as in a test set. If the layout
  has a language and the file a column "language", other rows are skipped.

  Args:
    source: the file.
    layout: its columns and labels.
    prepare: applied to each record first.

  Raises:
    DataError: see tables.read_records; a text column is missing, a label is not
      one of the layout's, a score is not a number, or no row has the language.
  """
  records = tables.read_records(
    source,
    header=layout.header,
    ragged=_leave_out if layout.corrupt_rows else None,
  )
  if layout.language:
    records = _in_language(records, source, layout.language)
  odd: tables.Odd = {}
  examples = []
  for record in records:
    if not examples:
      _check_second_text(record, layout)
    examples.append(_example(prepare(record), layout, odd))
  tables.report_odd(odd)
  return examples


def _check_second_text(record: tables.Record, layout: FileLayout) -> None:
  """Reports a column that may be the second text of pairs, and is not read.

  Raises:
    DataError: it is named text_b, as in predict's input.
  """
  if layout.text_b or layout.alone:
    return
  for name in _SECOND_TEXTS:
    if name in record.fields:
      message = (
        f"{record.where}: the column {name!r} is not read; if the texts are "
        f"pairs, --config.task.text_b={name}"
      )
      if name == "text_b":
        raise DataError(f"{message}; if not, rename it.")
      log(message)


def parse_line(line: str, layout: FileLayout) -> Example:
  """Parses a line of predict's input: a text, or two separated by a tab.

  A line may also be a JSON object with "text" and "text_b", or with the names
  of the layout's columns.

  Raises:
    DataError: the object lacks a text, half of a pair is missing, or a pair is
      given where a single text is expected.
  """
  if tables.is_object(line):
    record = tables.parse_record(line)
    names_b = ("text_b", *layout.text_b)
    text = _json_text(record, ("text", *layout.text))
    if _is_pair(record, layout):
      return Example(text, _json_text(record, names_b))
    if not layout.text_b and "text_b" in record.fields:
      raise DataError(
        f"input {line[:40]!r} has 'text_b', but this model takes single texts."
      )
    return Example(text)
  if not layout.text_b:
    return Example(line)
  text, tab, text_b = line.partition("\t")
  if not tab and layout.alone:
    return Example(line)
  if not tab:
    raise DataError(
      f"input {line[:40]!r} is one text, but this model takes pairs; expected "
      "two texts with a tab between them."
    )
  return Example(text, text_b)


def gold_labels(examples: Sequence[Example]) -> list[Any]:
  """Returns the label of each example.

  Raises:
    DataError: an example has no label; the message is its `no_label`.
  """
  for example in examples:
    if example.label is None:
      raise DataError(example.no_label or "an example has no label.")
  return [example.label for example in examples]


def _leave_out(error: DataError) -> None:
  log(f"left out: {error}")


def _in_language(
  records: Iterable[tables.Record], source: str, language: str
) -> Iterator[tables.Record]:
  languages: Counter[str] = Counter()
  named = False
  for record in records:
    named |= "language" in record.fields
    found = tables.as_text(record.fields.get("language", language))
    languages[found] += 1
    if found == language:
      yield record
  others = languages.total() - languages[language]
  if not languages[language]:
    raise DataError(
      f"{source}: no row has the language {language!r}"
      f"{did_you_mean(language, languages)}; known: "
      f"{', '.join(sorted(languages))}."
    )
  if not named:
    log(f"{source}: no column 'language'; all rows are taken as {language!r}")
  if others:
    log(f"{source}: {counted(others, 'row')} in other languages left out")


def _example(
  record: tables.Record, layout: FileLayout, odd: tables.Odd
) -> Example:
  text = _text(record, layout.text, layout, odd)
  text_b = None
  if _is_pair(record, layout):
    text_b = _text(record, layout.text_b, layout, odd)
  named = [name for name in layout.label if name in record.fields]
  if not named:
    why = (
      f"{tables.missing_column(record, layout.label)}; a label is needed here."
    )
    return Example(text, text_b, None, record.where, why)
  value = record.fields[named[0]]
  if isinstance(value, list | dict):
    raise DataError(
      f"{record.where}: the {named[0]} is {tables.as_text(value):.60}; "
      "expected one label; maskedlm finetune multi_label reads several."
    )
  label = tables.as_text(value).strip()
  if label in layout.unlabelled and label not in layout.labels:
    why = f"{record.where}: label {label!r} means no label; expected one here."
    return Example(text, text_b, None, record.where, why)
  label = layout.aliases.get(label, label)
  if layout.regression:
    return Example(text, text_b, _number(label, record.where), record.where)
  if layout.labels and label not in layout.labels:
    raise DataError(
      f"{record.where}: label {label!r}; expected one of "
      f"{', '.join(layout.labels)}."
    )
  return Example(text, text_b, label, record.where)


def _text(
  record: tables.Record,
  names: Sequence[str],
  layout: FileLayout,
  odd: tables.Odd,
) -> str:
  if layout.corrupt_rows and not tables.get_field(record, *names).strip():
    odd.setdefault((names[0], "are empty"), [0, record.where])[0] += 1
    return ""
  return tables.get_text(record, *names, odd=odd)


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


def _json_text(record: tables.Record, names: Sequence[str]) -> str:
  if not {*names} & {*record.fields}:
    raise DataError(
      f"input {json.dumps(record.fields)[:40]} has no {names[0]!r}; expected "
      'an object such as {"text": "..."}, with "text_b" for a pair.'
    )
  return tables.get_text(record, *names)
