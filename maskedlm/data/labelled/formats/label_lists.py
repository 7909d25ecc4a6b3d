"""Any number of labels of a text: a JSON list, a separator, or columns.

  ["a", "b"], [3, 10]          a list, also as the text of a field
  a, b                         names with task.separator, or line breaks,
                               between them
  a column for each label      1 or 0 (task.columns)
  "", []                       no label
  null, -, ?, NaN              not annotated: no gold labels

Lists as pandas and numpy write them, objects, and lists of 1 and 0 are refused.
"""

import re
from collections.abc import Sequence
from typing import Any

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import objects, tables
from maskedlm.data.labelled.formats import texts
from maskedlm.data.labelled.labels import NO_LABEL, NO_NUMBER, TRUTHS

# Texts that a program wrote for a list, or begun as one.
_WRITTEN = re.compile(
  r"\[.*|\(\)|\{\}|[({]\s*[bu]?['\"\d].*[)}]|[A-Za-z_.]+\([\[({].*\)|set\(\)",
  re.DOTALL,
)
_OTHER_SEPARATORS = (";", "|", "#", "/", "+", "&", ",", " ")


def read_examples(
  source: str,
  layout: texts.FileLayout,
  *,
  separator: str,
  columns: Sequence[str] = (),
) -> list[texts.Example]:
  """Returns the examples of a file; a label is a sorted tuple of names.

  The separator is between the labels in a text that is no list, "" for
  whitespace; `columns` have a label each, instead of the layout's.

  Raises:
    DataError: see texts.read_examples; a field is no list of labels, its labels
      have other separators, or a label's column is neither 1 nor 0.
  """
  plain: list[tuple[Sequence[str], str]] = []  # Of fields that are no lists.

  def in_field(record: tables.Record, layout: texts.FileLayout):
    name = layout.label[0]
    if name not in record.fields:
      return None, texts.no_column(record, layout)
    value = record.fields[name]
    labels = parse_labels(value, separator, record.where)
    if labels and isinstance(value, str) and value.strip()[:1] != "[":
      plain.append((labels, record.where))
    why = texts.means_none(record, tables.as_text(value))
    return labels, why if labels is None else ""

  def in_columns(record: tables.Record, layout: texts.FileLayout):
    if not {*columns} & {*record.fields}:  # A test set.
      return None, texts.no_column(record, layout._replace(label=(columns[0],)))
    labels = parse_columns(record, columns)
    why = texts.means_none(record, "")
    return labels, why if labels is None else ""

  read_label = in_columns if columns else in_field
  examples = texts.read_examples(source, layout, read_label)
  check_separator(plain)
  return examples


def parse_labels(
  value: Any, separator: str, where: str
) -> tuple[str, ...] | None:
  """Returns the labels in a field, sorted, each once; None for no gold.

  The separator is between the labels in a str that is no list, "" for
  whitespace.

  Raises:
    DataError: the value is not a list of labels.
  """
  if value is None or value in NO_LABEL[1:]:
    return None
  names = objects.as_list(value)
  if names is None and isinstance(value, str):
    if _WRITTEN.fullmatch(value.strip()):
      raise _no_list(value, where)
    lines = re.split(r"[\r\n]", value)
    names = [name for line in lines for name in line.split(separator or None)]
  names = [value] if names is None else names
  if any(x is None or isinstance(x, list | dict) for x in names):
    raise _no_list(value, where)
  names = [tables.as_text(x).strip() for x in names]
  _check_names(names, value, where)
  return tuple(sorted({*names} - {""}))


def _no_list(value: Any, where: str) -> DataError:
  return DataError(
    f"{where}: the labels {tables.as_text(value)!r:.60}; expected a list of "
    'JSON such as ["a", "b"] (json.dumps writes it), or names with '
    "task.separator between them."
  )


def _check_names(names: Sequence[str], value: Any, where: str) -> None:
  """Raises DataError for a multi-hot list: 1 and 0 in an order, or repeated."""
  words = names
  if len(names) == 1:  # Between spaces, where the separator is a comma.
    words = names[0].split()
  truths = [TRUTHS.get(name.lower()) for name in words]
  if len(words) < 2 or None in truths:
    return
  if words is not names or truths != [False, True]:  # That may be 0 and 1.
    raise DataError(
      f"{where}: the labels {tables.as_text(value)!r:.60} are a list of 1 and "
      "0, not of names; write the names, or give each label a column "
      "(task.columns)."
    )


def parse_columns(
  record: tables.Record, columns: Sequence[str]
) -> tuple[str, ...] | None:
  """Returns the columns that are 1, sorted; None for no gold labels.

  There are none if all are empty or -1, as in the test set of Kaggle's toxic
  comments.

  Raises:
    DataError: a column is missing or has a value other than 1 and 0.
  """
  values = {name: tables.get_field(record, name).strip() for name in columns}
  if all(x in (*NO_LABEL, *NO_NUMBER) for x in values.values()):
    return None
  for name, value in values.items():
    if value.lower() not in TRUTHS:
      raise DataError(
        f"{record.where}: {name} is {value!r:.40}; expected 1 if the text has "
        "the label, else 0."
      )
  return tuple(sorted(n for n, x in values.items() if TRUTHS[x.lower()]))


def check_separator(fields: Sequence[tuple[Sequence[str], str]]) -> None:
  """Checks that a file's labels are not between other separators.

  Args:
    fields: (labels, FILE:LINE) of each field that is no list.

  Raises:
    DataError: a label consists of others, or some have ; or | within and no
      field has several.
  """
  places = {name: where for names, where in reversed(fields) for name in names}
  is_used = any(len(names) > 1 for names, _ in fields)
  for name, where in places.items():
    for other in _OTHER_SEPARATORS:
      parts = [*filter(None, map(str.strip, name.split(other)))]
      if (other in ";|" and other in name and not is_used) or (
        len(parts) > 1 and all(part in places for part in parts)
      ):
        raise DataError(
          f"{where}: the label {name!r:.60} has {other!r} within; set "
          f'--config.task.separator="{other.strip()}" if it is between labels, '
          'or write ["..."] if it is part of a name.'
        )
