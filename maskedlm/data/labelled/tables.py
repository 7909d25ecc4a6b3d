"""Reads tables of labelled examples: CSV, TSV, JSON, Parquet and TFDS.

All tasks read users' files through this module, so that errors name the file,
the line and its columns. The forms of files, and how each is read:

  files
    .csv, .tsv, .txt           rows of fields: delimited.py
    .jsonl, .ndjson, .json,
    .parquet, tfds:...         objects with named fields: objects.py
    gzip, zstd, bzip2, xz      decompressed, whatever the name; Parquet is
                               known by its first bytes, too
    zip, Excel, SQLite, PDF,
    HTML, UTF-16, UTF-32       refused by name (data/sources/encodings.py)
    not UTF-8                  refused, with the encoding that keeps the text
    a byte order mark, \\r\\n,
    \\r alone, blank lines      dropped
  columns
    without a name             dropped: pandas' index, R's row names
    a name twice               refused, in an object as well
    a header, though names
    are given; a second one    recognised by its names, and reported
  rows
    too few or many fields     refused, unless those too many are empty
    only empty fields          left out, and reported
  texts (get_text)
    null, empty, blank;
    a list or an object        refused, in every format
    a number, a boolean        read as .csv has it
    NaN, NA, None, null, or
    what looks like a list     read, and reported
"""

import pathlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError, did_you_mean
from maskedlm.data.labelled import delimited, objects, tfds_rows
from maskedlm.data.labelled.lines import is_plain, read_head
from maskedlm.data.labelled.objects import as_text
from maskedlm.data.sources import encodings, tfds
from maskedlm.runtime import console

_COMPRESSED = (".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz")
# What a line of input begins with if it is meant to be an object.
_OBJECT = re.compile(r"\s*\{\s*([\"'}]|$)")
_SHOWN = 40  # Names of columns in a message.
_LISTED = re.compile(r"[\[{]\s*[\"']")
# Texts that may be what a program wrote for a missing one.
_MISSING = {"nan", "na", "n/a", "none", "null", "<na>"}


class Record(NamedTuple):
  """A row of a file, or a line of input."""

  line: int  # From 1; the first of several; in Parquet and TFDS, the row.
  # Column -> value: a str, or in JSON, Parquet and TFDS also an int, float,
  # bool, list, dict or None.
  fields: Mapping[str, Any]
  path: str

  @property
  def where(self) -> str:
    """FILE:LINE, the beginning of error messages."""
    return f"{self.path}:{self.line}" if self.line else self.path


def read_records(
  path: str | pathlib.Path,
  *,
  header: Sequence[str] = (),
  ragged: Callable[[DataError], None] | None = None,
  told: Callable[[str], None] = console.log,
) -> Iterator[Record]:
  """Yields the rows of a file, in bounded memory; a .json file is read whole.

  Args:
    path: the file, or "tfds:..."; see above.
    header: names of the columns, for a file without a header row.
    ragged: called with the error of a row that has too few or too many columns,
      which is then skipped; if None, the error is raised.
    told: called with what a user should know about the file, in one line.

  Raises:
    DataError: the file is missing, empty or has no row, or is not of a known
      kind; a column name occurs twice, a row is ragged or not JSON, or a quote
      is not closed.
  """
  suffix = find_suffix(path)
  if suffix in delimited.SUFFIXES:
    path = pathlib.Path(path)
    found = _with_columns(path, suffix, tuple(header), ragged, told)
  else:
    if header:
      told(f"{path}: task.header has no effect, as its rows name their columns")
    rows = objects.read_objects(path)
    found = (Record(n, x, str(path)) for n, x in rows)
  count = 0
  for count, record in enumerate(found, 1):  # noqa: B007 - used below.
    yield record
  if not count:
    raise _no_row(path)


def read_first_row(path: str | pathlib.Path) -> list[str]:
  """Returns the fields of the first row; of objects, the names of the fields.

  Raises:
    DataError: as for read_records.
  """
  suffix = find_suffix(path)
  if suffix in delimited.SUFFIXES:
    path = pathlib.Path(path)
    dialect = delimited.find_dialect(path, suffix)
    found = (row for _, row in delimited.read_rows(path, dialect))
  else:
    found = (list(fields) for _, fields in objects.read_objects(path))
  first = next(found, None)
  if first is None:
    raise _no_row(path)
  return first


def named_suffix(path: str | pathlib.Path) -> str:
  """Returns the last suffix of a name, in lower case; ".csv" of "a.csv.gz"."""
  path = pathlib.Path(path)
  named = path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path
  return named.suffix.lower()


def find_suffix(path: str | pathlib.Path) -> str:
  """Returns the suffix that says how a file is read, such as ".csv".

  That is .parquet if its first bytes say so, .csv of "a.csv.gz", and "tfds:" of
  a TFDS dataset.

  Raises:
    DataError: the file can't be opened, or its suffix is unknown.
  """
  if tfds_rows.is_source(path):
    return tfds.PREFIX
  path, suffix = pathlib.Path(path), named_suffix(path)
  known = (*delimited.SUFFIXES, *objects.JSON_SUFFIXES, ".parquet")
  head = read_head(path) if path.exists() or suffix in known else b""
  if head.startswith(encodings.PARQUET):
    if not is_plain(path):
      raise DataError(f"{path} is compressed Parquet; decompress it.")
    return ".parquet"
  if suffix not in known:
    is_name = encodings.name_of_binary(head)
    raise DataError(
      f"{path}: the name ends in {suffix!r}"
      f"{f', and the file is {is_name}' if is_name else ''}; expected .tsv or "
      ".txt (columns between tabs), .csv, .jsonl, .json or .parquet."
    )
  return suffix


def _no_row(path: str | pathlib.Path) -> DataError:
  return DataError(f"{path}: has no row; expected at least one example.")


def _with_columns(
  path: pathlib.Path,
  suffix: str,
  header: tuple[str, ...],
  ragged: Callable[[DataError], None] | None,
  told: Callable[[str], None],
) -> Iterator[Record]:
  dialect = delimited.find_dialect(path, suffix, width=len(header))
  if dialect.note:
    told(dialect.note)
  names, rows = delimited.name_columns(
    path, delimited.read_rows(path, dialect), header, told
  )
  empty, repeated = [], []
  for line, row in rows:
    if not any(map(str.strip, row)):
      empty += [line] * (len(row) > 1)  # Not a blank line.
    elif row == names and len(row) > 1:
      repeated.append(line)
    elif len(row) == len(names) or (
      len(row) > len(names) and not any(map(str.strip, row[len(names) :]))
    ):
      fields = zip(names, row, strict=False)
      yield Record(line, {n: x for n, x in fields if n}, str(path))
    else:
      error = DataError(
        f"{path}:{line}: the row has {counted(len(row), 'column')}; expected "
        f"{len(names)} ({', '.join(names)}); is there a missing or extra tab "
        "or quote?"
      )
      if ragged is None:
        raise error
      ragged(error)
  for lines, what in (
    (empty, ("row of empty fields", "rows of empty fields")),
    (repeated, ("repetition of the header", "repetitions of the header")),
  ):
    if lines:
      told(f"{path}:{lines[0]}: {counted(len(lines), *what)}; left out")


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
  raise DataError(missing_column(record, names))


# (column, what its texts look like) -> [their number, the first FILE:LINE].
Odd = dict[tuple[str, str], list]


def get_text(record: Record, *names: str, odd: Odd | None = None) -> str:
  """Returns the text that is to be read, from the first column that there is.

  Args:
    record: the row.
    names: the columns.
    odd: counts the texts that may be something else, for report_odd.

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
  if odd is not None:
    _count_odd(odd, name, text, record.where)
  return text


def _count_odd(odd: Odd, name: str, text: str, where: str) -> None:
  short = text.strip()
  what = ""
  if short.casefold() in _MISSING:
    what = f"are {short!r}"
  elif _LISTED.match(short) and short.endswith(("]", "}")):
    what = "look like a list or an object"
  if what:
    odd.setdefault((name, what), [0, where])[0] += 1


def report_odd(odd: Odd, told: Callable[[str], None] = console.log) -> None:
  """Reports the texts that get_text counted, a line for each kind."""
  for (name, what), (count, where) in odd.items():
    told(f"{where}: {count:,} of the column {name!r} {what}; read as texts")


def missing_column(record: Record, names: Sequence[str]) -> str:
  """Returns the error message for a record that has none of these columns."""
  near = did_you_mean(names[0], record.fields)
  suffixes = pathlib.Path(record.path.lower()).suffixes
  if not near and not delimited.SUFFIXES.keys().isdisjoint(suffixes):
    near = "; is the first line a header?"
  named = list(record.fields)[:_SHOWN]
  left = len(record.fields) - len(named)
  more = f" and {left:,} more" if left else ""
  return (
    f"{record.where}: no column {' or '.join(map(repr, names))}; there are "
    f"{', '.join(map(repr, named))}{more}{near}"
  )


# --- Lines of input ---


def is_object(line: str) -> bool:
  """Returns whether a line of input is meant to be a JSON object.

  A text may begin with { as well, as in "{laughs} no".
  """
  return bool(_OBJECT.match(line))


def parse_record(line: str, where: str = "input") -> Record:
  """Returns the Record of a JSON object in a line of input.

  Raises:
    DataError: the line is not an object.
  """
  return Record(0, objects.parse_object(line, where), where)
