"""Reads labelled texts and pairs for classification, in a given layout.

A layout (glue.FileLayout) names the columns; data/labelled/tables.py reads
them.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.errors import DataError, did_you_mean
from maskedlm.data.labelled import tables, tfds_tables
from maskedlm.finetune.classification.glue import FileLayout
from maskedlm.runtime.console import log


class Example(NamedTuple):
  """A text or a pair of texts, and its label."""

  text: str
  text_b: str | None = None
  label: str | float | None = None
  where: str = ""  # FILE:LINE.
  no_label: str = ""  # The error message if a missing label is needed.


def read_examples(
  source: str,
  layout: FileLayout,
  prepare: Callable[[tables.Record], tables.Record] = lambda record: record,
) -> list[Example]:
  """Reads the examples of a file (tables.py) or of "tfds:..." (tfds_tables.py).

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
  if source.startswith(tfds_tables.PREFIX):
    records = tfds_tables.read_records(source)
  else:
    header = layout.header
    if header and {*tables.read_first_row(source)} & {*layout.text}:
      header = ()  # The file has a header line, like CoLA's test set.
    records = tables.read_records(
      source,
      header=header,
      ragged=_leave_out if layout.corrupt_rows else None,
    )
  if layout.language:
    records = _in_language(records, source, layout.language)
  return [_example(prepare(record), layout) for record in records]


def parse_line(line: str, layout: FileLayout) -> Example:
  """Parses a line of predict's input: a text, or two separated by a tab.

  A line may also be a JSON object with "text" and "text_b", or with the names
  of the layout's columns.

  Raises:
    DataError: the object lacks a text, half of a pair is missing, or a pair is
      given where a single text is expected.
  """
  if line.startswith("{"):
    fields = tables.parse_json_fields(line, "input")
    text = _json_field(fields, ("text", *layout.text))
    if _is_pair(fields, layout):
      return Example(text, _json_field(fields, ("text_b", *layout.text_b)))
    if "text_b" in fields:
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
  languages: set[str] = set()
  for record in records:
    languages.add(record.fields.get("language", language))
    if record.fields.get("language", language) == language:
      yield record
  if language not in languages:
    raise DataError(
      f"{source}: no row has the language {language!r}"
      f"{did_you_mean(language, languages)}; known: "
      f"{', '.join(sorted(languages))}."
    )


def _example(record: tables.Record, layout: FileLayout) -> Example:
  text = tables.get_field(record, *layout.text)
  is_pair = _is_pair(record.fields, layout)
  text_b = tables.get_field(record, *layout.text_b) if is_pair else None
  named = [name for name in layout.label if name in record.fields]
  if not named:
    why = (
      f"{tables.missing_column(record, layout.label)}; a label is needed here."
    )
    return Example(text, text_b, None, record.where, why)
  label = record.fields[named[0]].strip()
  if label in layout.unlabelled:
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


def _is_pair(fields: Iterable[str], layout: FileLayout) -> bool:
  """Tells whether a second text is expected among these fields."""
  names = {"text_b", *layout.text_b}
  return bool(layout.text_b) and not (layout.alone and names.isdisjoint(fields))


def _number(label: str, where: str) -> float:
  try:
    value = float(label)
  except ValueError:
    value = float("nan")
  if not np.isfinite(value):
    raise DataError(
      f"{where}: score {label!r} is not a number; expected one such as 3.8."
    )
  return value


def _json_field(fields: Mapping[str, str], names: Sequence[str]) -> str:
  for name in names:
    if name in fields:
      return fields[name]
  raise DataError(
    f"input {json.dumps(fields)[:40]} has no {names[0]!r}; expected an object "
    'such as {"text": "..."}, with "text_b" for a pair.'
  )
