"""Reads tables of labelled examples: TSV, CSV, JSONL and Parquet.

All tasks read users' files through this module, so that errors name the file,
the line and its columns.
"""

import csv
import json
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from maskedlm.core.errors import DataError, did_you_mean
from maskedlm.data.sources import parquet

_BOM = b"\xef\xbb\xbf"
_MAX_FIELD = 1 << 30  # Characters; csv's default limit is 131,072.


class Record(NamedTuple):
  """A row of a file."""

  line: int  # From 1; the first of several lines; in Parquet, the row.
  fields: Mapping[str, str]  # Column -> its text.
  path: str

  @property
  def where(self) -> str:
    """FILE:LINE, the beginning of error messages."""
    return f"{self.path}:{self.line}"


def read_records(
  path: str | pathlib.Path,
  *,
  header: Sequence[str] = (),
  ragged: Callable[[DataError], None] | None = None,
) -> Iterator[Record]:
  """Yields the rows of a file, in bounded memory.

  Args:
    path: .tsv or .txt (tabs), .csv (commas), .jsonl (one object per line) or
      .parquet; in the latter two, values that are not strings become JSON. In
      .csv, "..." quotes a field (RFC 4180); in .tsv, quotation marks are
      ordinary text (GLUE). A byte order mark, blank lines and the \\r of \\r\\n
      are dropped.
    header: names of the columns, for a file without a header row.
    ragged: called with the error of a row that has too few or too many columns,
      which is then skipped; if None, the error is raised.

  Raises:
    DataError: the file is missing, empty or has no row, a column name occurs
      twice, a row is ragged or not JSON, a quote is not closed, or the file is
      not UTF-8 or not Parquet.
  """
  path = pathlib.Path(path)
  suffix = path.suffix.lower()
  if suffix in OBJECTS:
    found = OBJECTS[suffix](path)
  else:
    found = _with_columns(path, _rows(path, suffix), header, ragged)
  count = 0
  for count, record in enumerate(found, 1):  # noqa: B007 - used below.
    yield record
  if not count:
    raise _no_row(path)


def read_first_row(path: str | pathlib.Path) -> list[str]:
  """Returns the fields of the first row; for OBJECTS, the names of the fields.

  Raises:
    DataError: as for read_records.
  """
  path = pathlib.Path(path)
  suffix = path.suffix.lower()
  if suffix in OBJECTS:
    found = (list(record.fields) for record in OBJECTS[suffix](path))
  else:
    found = (row for _, row in _rows(path, suffix))
  first = next(found, None)
  if first is None:
    raise _no_row(path)
  return first


def _no_row(path: pathlib.Path) -> DataError:
  return DataError(f"{path}: has no row; expected at least one example.")


def get_field(record: Record, *names: str) -> str:
  """Returns the text of the first of these columns that the record has.

  Raises:
    DataError: the record has none of them.
  """
  for name in names:
    if name in record.fields:
      return record.fields[name]
  raise DataError(missing_column(record, names))


def missing_column(record: Record, names: Sequence[str]) -> str:
  """Returns the error message for a record that has none of these columns."""
  near = did_you_mean(names[0], record.fields)
  return (
    f"{record.where}: no column {' or '.join(map(repr, names))}; there are "
    f"{', '.join(map(repr, record.fields))}{near}"
  )


def read_lines(path: pathlib.Path) -> Iterator[str]:
  """Yields the lines of a UTF-8 file, without line ends.

  Raises:
    DataError: the file is missing, empty or not UTF-8.
  """
  is_empty = True
  try:
    with path.open("rb") as file:
      for _, line in decode_lines(file, str(path)):
        is_empty = False
        yield line
  except OSError as error:
    raise DataError(
      f"{path}: {error.strerror}; expected a file of labelled examples."
    ) from None
  if is_empty:
    raise DataError(f"{path}: the file is empty; expected labelled examples.")


def decode_lines(
  lines: Iterable[bytes], name: str
) -> Iterator[tuple[int, str]]:
  """Yields (number from 1, text) of lines of bytes, without line ends.

  Raises:
    DataError: a line is not UTF-8; the message names the file `name`.
  """
  for number, line in enumerate(lines, 1):
    line = line.removeprefix(_BOM) if number == 1 else line
    try:
      text = line.decode("utf-8")
    except UnicodeDecodeError as error:
      raise DataError(
        f"{name}:{number}: not UTF-8 (byte 0x{line[error.start]:02x} at "
        f"{error.start + 1} of the line); expected UTF-8; convert it, for "
        "example with iconv -f latin1 -t utf-8."
      ) from None
    yield number, text.removesuffix("\n").removesuffix("\r")


def _rows(path: pathlib.Path, suffix: str) -> Iterator[tuple[int, list[str]]]:
  """Yields (line, fields) of each row that is not blank."""
  separators = {".tsv": "\t", ".txt": "\t", ".csv": ","}
  if suffix not in separators:
    raise DataError(
      f"{path}: the name ends in {suffix!r}; expected .tsv or .txt (columns "
      "between tabs), .csv, .jsonl or .parquet."
    )
  separator, lines = separators[suffix], read_lines(path)
  if suffix == ".csv":
    rows = _quoted(path, lines, separator)
  else:
    rows = ((n, line.split(separator)) for n, line in enumerate(lines, 1))
  return (row for row in rows if row[1] not in ([], [""]))


def _quoted(
  path: pathlib.Path, lines: Iterable[str], separator: str
) -> Iterator[tuple[int, list[str]]]:
  csv.field_size_limit(_MAX_FIELD)
  reader = csv.reader(
    (f"{line}\n" for line in lines), delimiter=separator, strict=True
  )
  while True:
    start = reader.line_num + 1
    try:
      row = next(reader)
    except StopIteration:
      return
    except csv.Error as error:
      raise DataError(
        f"{path}:{start}: the row that begins here can't be read ({error}); is "
        'a quotation mark not closed? Within quotes, write " as "".'
      ) from None
    yield start, row


def _with_columns(
  path: pathlib.Path,
  rows: Iterator[tuple[int, list[str]]],
  header: Sequence[str],
  ragged: Callable[[DataError], None] | None,
) -> Iterator[Record]:
  names = [name.strip() for name in header or next(rows, (1, []))[1]]
  twice = {name for name in names if names.count(name) > 1}
  if twice:
    raise DataError(
      f"{path}:1: the column {sorted(twice)[0]!r} occurs twice; expected a "
      "header with distinct names; if the file has no header, set task.header."
    )
  for line, row in rows:
    if len(row) == len(names):
      yield Record(line, dict(zip(names, row, strict=True)), str(path))
      continue
    error = DataError(
      f"{path}:{line}: the row has {len(row)} columns; expected "
      f"{len(names)} ({', '.join(names)}); is there a missing or extra tab or "
      "quote?"
    )
    if ragged is None:
      raise error
    ragged(error)


def _objects(path: pathlib.Path) -> Iterator[Record]:
  for number, line in enumerate(read_lines(path), 1):
    if line.strip():
      yield Record(
        number, parse_json_fields(line, f"{path}:{number}"), str(path)
      )


def _parquet(path: pathlib.Path) -> Iterator[Record]:
  try:
    for number, fields in enumerate(parquet.read_rows(str(path)), 1):
      yield Record(number, _texts(fields), str(path))
  except parquet.ParquetError as error:
    raise DataError(f"{error}; expected labelled examples.") from None
  except UnicodeDecodeError as error:
    raise DataError(
      f"{path}:{number}: {error.object[:40]!r} is not UTF-8; expected text."
    ) from None


# Suffixes of the files whose rows are objects with named fields.
OBJECTS = {".jsonl": _objects, ".parquet": _parquet}


def parse_json_fields(line: str, where: str) -> dict[str, str]:
  """Returns the fields of a JSON object, without those that are null.

  Raises:
    DataError: the line is not an object.
  """
  such_as = '{"text": "...", "label": "..."}'
  return _texts(parse_json_object(line, where, such_as=such_as))


def parse_json_object(line: str, where: str, *, such_as: str) -> dict[str, Any]:
  """Returns the JSON object in a line.

  Args:
    line: the text.
    where: FILE:LINE, for errors.
    such_as: an example of an object, for errors.

  Raises:
    DataError: the line is not an object.
  """
  try:
    value = json.loads(line)
  except (ValueError, RecursionError) as error:
    raise DataError(
      f"{where}: not JSON ({error}); expected an object, such as {such_as}."
    ) from None
  if not isinstance(value, dict):
    raise DataError(
      f"{where}: a JSON {type(value).__name__}; expected an object, such as "
      f"{such_as}."
    )
  return value


def _texts(fields: Mapping[str, Any]) -> dict[str, str]:
  return {k: _text(v) for k, v in fields.items() if v is not None}


def _text(value: Any) -> str:
  if isinstance(value, bytes):  # Strings of old Parquet writers.
    return value.decode("utf-8")
  if isinstance(value, list | dict | bool | int | float):
    return json.dumps(value, ensure_ascii=False, default=str)
  return encodable(str(value))


def encodable(text: str) -> str:
  """Replaces lone surrogates, which JSON can express but UTF-8 can't, by ?."""
  return text.encode("utf-8", "replace").decode("utf-8")
