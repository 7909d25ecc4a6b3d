"""Reads tables of labelled examples: CSV, TSV, JSON, Parquet and TFDS.

Errors name the file, the line and its columns. What is read, and what is
refused in one line:

  files
    .csv, .tsv, .txt           rows of fields: delimited.py
    .jsonl, .ndjson, .json,
    .parquet, tfds:...         objects with named fields: objects.py
    .fa, .fasta, .faa, ...     FASTA: id, text, and KEY=VALUE of the header
    gzip, zstd, bzip2, xz      decompressed, whatever the name; Parquet is
                               known by its first bytes, too
    zip, Excel, SQLite, PDF,
    HTML, UTF-16, not UTF-8    refused (data/sources/encodings.py)
    a byte order mark, \\r\\n,
    \\r alone, blank lines      dropped
  columns
    without a name             dropped: pandas' index
    a name twice               refused, in an object as well
    a header line again        refused
  rows
    too few or many fields     refused
  texts (get_text)
    null, empty, blank;
    a list or an object        refused, in every format
    a number, a boolean        read as .csv has it
    NaN, NA, None, null, or
    what looks like a list     read, and reported
"""

import os
import pathlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bad_rows, delimited, fields, objects
from maskedlm.data.labelled.lines import COMPRESSED, read_head, read_lines
from maskedlm.data.labelled.objects import as_text
from maskedlm.data.sources import encodings, fasta
from maskedlm.runtime import console

# What a line of input begins with if it is meant to be an object.
_OBJECT = re.compile(r"\s*\{\s*([\"'}]|$)")
_LISTED = re.compile(r"[\[{]\s*[\"'].*[\]}]", re.DOTALL)
# Texts that may be what a program wrote for a missing one.
_MISSING = {"nan", "na", "n/a", "none", "null", "<na>"}
MAX_SEQUENCE = 1 << 22  # Letters; a sequence is tokenized whole.


class Record(NamedTuple):
  """A row of a file, or a line of input."""

  # From 1; the first of several; the row of Parquet, TFDS and a list of JSON.
  line: int
  # Column -> value: a str, or in JSON, Parquet and TFDS also an int, float,
  # bool, list, dict or None.
  fields: Mapping[str, Any]
  path: str
  # Of a file's texts that may be something else, (column, what they look like)
  # -> [their number, the first FILE:LINE]; None for a line of input.
  odd: dict[tuple[str, str], list] | None = None

  @property
  def where(self) -> str:
    """FILE:LINE, the beginning of error messages."""
    return f"{self.path}:{self.line}" if self.line else self.path


def read_records(
  path: str | pathlib.Path,
  *,
  header: Sequence[str] = (),
  ragged: Callable[[DataError], None] = bad_rows.refuse,
) -> Iterator[Record]:
  """Yields the rows of a file, in bounded memory; a .json file is read whole.

  Args:
    path: the file, or "tfds:..."; see above.
    header: names of the columns, for a file without a header row.
    ragged: called with the error of a row that has too few or too many columns
      or is the header again, which is skipped unless it raises.

  Raises:
    DataError: the file is missing, empty or has no row, or is not of a known
      kind; a column name occurs twice, a row is ragged or not JSON, or a quote
      is not closed.
  """
  suffix = named_suffix(path)
  object_suffixes = (*objects.JSON_SUFFIXES, ".parquet")
  if suffix in object_suffixes or objects.is_parquet_or_tfds(path):
    if header:
      console.log(
        f"{path}: task.header has no effect, as its rows name their columns"
      )
    rows = objects.read_objects(path)
    records: Iterator[Record] = (Record(n, x, str(path)) for n, x in rows)
  elif suffix in fasta.SUFFIXES:
    records = _sequences(pathlib.Path(path))
  elif suffix in delimited.SEPARATORS:
    path = pathlib.Path(path)
    records = _with_columns(path, suffix, tuple(header), ragged)
  else:
    head = read_head(path) if os.path.exists(path) else b""
    name = encodings.name_of_binary(head)
    kind = f", and the file is {name}" if name else ""
    raise DataError(
      f"{path}: the name ends in {suffix!r}{kind}; expected .tsv or .txt "
      "(columns between tabs), .csv, .jsonl, .json or .parquet."
    )
  is_empty = True
  odd: dict[tuple[str, str], list] = {}
  for record in records:
    is_empty = False
    yield record._replace(odd=odd)
  if is_empty:
    raise DataError(
      f"{path}: has no row; expected at least one example (below a header, if "
      "it is a table; name a file of lines .txt)."
    )
  for (name, description), (count, where) in odd.items():
    console.log(
      f"{where}: {count:,} of the column {name!r} {description}; read as texts"
    )


def is_table(path: str | pathlib.Path) -> bool:
  """Returns whether a file of input has rows with fields, not lines of text.

  JSON, Parquet, FASTA, .csv and .tsv have, by the file's name.
  """
  suffixes = (*objects.JSON_SUFFIXES, *fasta.SUFFIXES, ".parquet", ".csv")
  return named_suffix(path) in (*suffixes, ".tsv")


def named_suffix(path: str | pathlib.Path) -> str:
  """Returns the last suffix of a name, in lower case; ".csv" of "a.csv.gz"."""
  path = pathlib.Path(path)
  if path.suffix.lower() in COMPRESSED:
    path = path.with_suffix("")
  return path.suffix.lower()


def _sequences(path: pathlib.Path) -> Iterator[Record]:
  """Yields the records of FASTA, in capitals."""
  report: Counter = Counter()
  sequences = fasta.read_records(
    enumerate(read_lines(path), 1),
    str(path),
    fasta.USUAL,
    report,
    names={},
    error=DataError,
    most=MAX_SEQUENCE,
  )
  for x in sequences:
    if x.part:
      raise DataError(
        f"{x.where}: the sequence {x.name!r} has over {MAX_SEQUENCE:,} letters:"
        " divide it into several records."
      )
    columns = {**x.fields, "id": x.name, "text": x.sequence}
    yield Record(int(x.where.rpartition(":")[2]), columns, str(path))
  for repair, count in report.items():
    console.log(f"{path}: {repair}: {count:,}")


def _with_columns(
  path: pathlib.Path,
  suffix: str,
  header: tuple[str, ...],
  ragged: Callable[[DataError], None],
) -> Iterator[Record]:
  rows = delimited.read_rows(path, suffix)
  names, rows = delimited.name_columns(path, suffix, rows, header)
  for line, row in rows:
    if row == names and len(row) > 1:
      problem = (
        "the header line again; expected one in a file: delete the others."
      )
      ragged(DataError(f"{path}:{line}: {problem}"))
      continue
    if len(row) == len(names):
      by_name = zip(names, row, strict=True)
      yield Record(line, {n: x for n, x in by_name if n}, str(path))
      continue
    hint = ""
    if len(row) == len(names) + 1:
      hint = ", or are there names of rows (R: row.names=FALSE)"
    error = DataError(
      f"{path}:{line}: the row has {counted(len(row), 'column')}; expected "
      f"{len(names)} ({', '.join(names)}); is there a missing or extra tab "
      f"or quote{hint}?"
    )
    ragged(error)


# --- Values ---


def get_field(record: Record, *names: str) -> str:
  """Returns the text of the first of these columns that the record has.

  A value that is not a string becomes JSON; a null, "".

  Raises:
    DataError: the record has none of them.
  """
  return as_text(get_value(record, *names))


def get_value(record: Record, *names: str) -> Any:
  """Returns the value of the first of these columns that the record has.

  Raises:
    DataError: the record has none of them.
  """
  for name in names:
    if name in record.fields:
      return record.fields[name]
  is_delimited = named_suffix(record.path) in delimited.SEPARATORS
  kind = bad_rows.TableError if is_delimited else DataError
  raise kind(missing_column(record, names))


def get_text(record: Record, *names: str) -> str:
  """Returns the text that is to be read, from the first column that there is.

  Raises:
    DataError: the record has none of the columns, or the value is null, empty
      or blank, a list or an object.
  """
  value = get_value(record, *names)
  name = next(name for name in names if name in record.fields)
  text = as_text(value)
  kinds = {list: "a list", dict: "an object", type(None): "null"}
  kind = kinds.get(type(value), "" if text.strip() else "empty")
  if kind:
    raise DataError(
      f"{record.where}: the {name} is {kind}; expected a text; correct the "
      "row or leave it out."
    )
  if text.strip().casefold() in _MISSING:
    count_odd(record, name, f"are {text.strip()!r}")
  elif _LISTED.fullmatch(text.strip()):
    count_odd(record, name, "look like a list or an object")
  return text


def count_odd(record: Record, name: str, what: str) -> None:
  """Counts a text of a column that may be something else, for a log line."""
  if record.odd is not None:
    record.odd.setdefault((name, what), [0, record.where])[0] += 1


def missing_column(
  record: Record,
  names: Sequence[str],
  remedy: str = "expected a column of that name.",
) -> str:
  """Returns the error message for a record that has none of these columns."""
  return fields.missing(record.where, names, record.fields, remedy)


# --- Lines of input ---


def is_object(line: str) -> bool:
  """Returns whether a line of input is meant to be a JSON object.

  A text may begin with { as well, as in "{laughs} no".
  """
  return bool(_OBJECT.match(line))


def parse_record(line: str) -> Record:
  """Returns the Record of a JSON object in a line of input.

  Raises:
    DataError: the line is not an object.
  """
  return Record(0, objects.parse_object(line, "input"), "input")
