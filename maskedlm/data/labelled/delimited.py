"""Reads rows of fields from .csv, .tsv and .txt files, as programs write them.

written by                 is recognised by
pandas, most programs      .csv: fields may be quoted, " within them is twice
a German or French Excel   .csv: the first row has more ; (or | or tabs)
GLUE, SemEval              .tsv, .txt: quotation marks are text
pandas or Excel, as TSV    .tsv, .txt: each field with a quotation mark is
                           quoted, and some had to be
R, pandas' QUOTE_ALL       .tsv, .txt: the first row is quoted altogether
by hand                    .csv: a space after each separator of the first row
                           is left out in all rows
Excel, for itself          sep=; in the first line, which is no row
"""

import collections
import csv
import itertools
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.lines import read_lines

SUFFIXES = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_OTHERS = "\t;|,"
_MAX_FIELD = 1 << 30  # Characters; csv's default limit is 131,072.
_MAX_QUOTED = 1 << 20  # Characters of a quoted field of several lines.
# Names of columns: a row of nothing else is a header line.
_USUAL = {"id", "idx", "index", "text", "text_b", "label", "labels", "class"}
_USUAL |= {"sentence", "sentence1", "sentence2", "premise", "hypothesis"}
_USUAL |= {"category", "target", "score", "title", "content", "review", "tweet"}
_USUAL |= {"comment", "question", "answer", "query", "passage", "context"}
_SEPARATOR = re.compile(r'"?sep=(.)"?$')
_QUOTED = '"(?:[^"]|"")*"'
_FIELD = re.compile(f'({_QUOTED}|[^"\t]*)(?:\t|\\Z)')
_ROW = re.compile(f'(?:{_QUOTED}|[^"\t]*)(?:\t(?:{_QUOTED}|[^"\t]*))*')


class Dialect(NamedTuple):
  """How fields are written."""

  separator: str
  is_quoted: bool  # Whether quotation marks around a field are not its text.
  is_spaced: bool = False  # Whether a space after a separator is not text.
  note: str = ""  # What a user should know about it.


def read_rows(
  path: pathlib.Path, dialect: Dialect
) -> Iterator[tuple[int, list[str]]]:
  """Yields (line from 1, fields) of each row that is not blank.

  Raises:
    DataError: see read_lines; a quotation mark is not closed.
  """
  lines = read_lines(path)
  if dialect.is_quoted:
    rows = _quoted(path, lines, dialect)
  else:
    rows = ((n, x.split(dialect.separator)) for n, x in enumerate(lines, 1))
  return (
    (number, row)
    for number, row in rows
    if row not in ([], [""])
    and not (number == 1 and _SEPARATOR.match(dialect.separator.join(row)))
  )


def find_dialect(path: pathlib.Path, suffix: str, *, width: int = 0) -> Dialect:
  """Returns how the fields of a file are written.

  Args:
    path: the file.
    suffix: one of SUFFIXES.
    width: the number of columns; 0 if it is not known.

  Raises:
    DataError: see read_lines.
  """
  usual, note = SUFFIXES[suffix], ""
  lines = read_lines(path)
  first = next((x for x in lines if x.strip()), "")
  if match := _SEPARATOR.match(first):
    return Dialect(match[1], True)
  first = re.sub(_QUOTED, "", first)
  counts = {x: first.count(x) for x in (usual, *_OTHERS)}
  found = max(counts, key=counts.get)  # The usual one of several.
  if usual == "\t" and counts[usual]:  # Commas are then a text's.
    found = usual
  if width and counts[found] + 1 != width:
    found = usual
  if found != usual:
    shown = "tabs" if found == "\t" else repr(found)
    note = f"{path}: the columns are between {shown}"
  if found != "\t" or usual != "\t":
    spaced = 0 < counts[found] == len(re.findall(f"{re.escape(found)} ", first))
    return Dialect(found, True, spaced, note)
  is_quoted, count = _find_quotes(read_lines(path))
  if count and not is_quoted:
    note = (
      f"{path}: {counted(count, 'field')} in quotation marks, which are taken "
      "as text; if they are not, name the file .csv"
    )
  return Dialect(found, is_quoted, note=note)


def _find_quotes(lines: Iterable[str]) -> tuple[bool, int]:
  """Returns whether quotation marks around fields are not text, and a count.

  They are not if each field with a quotation mark is quoted as in .csv, so that
  rows have equally many fields, and either the first row is quoted altogether,
  or one field contains "", or all had to be quoted, as they contain a tab or a
  line end. The count is of the quoted fields, or 0 if some field with a
  quotation mark is not quoted.
  """
  needed = total = width = 0
  is_sure, row = False, ""
  for line in lines:
    row = f"{row}\n{line}" if row else line
    if not row.strip():
      row = ""
      continue
    fields, count = [], row.count("\t") + 1
    if '"' in row:
      place = row.index('"')
      if place and row[place - 1] != "\t":
        return False, 0
      if row.count('"') % 2:  # It may go on in the next line.
        if len(row) > _MAX_QUOTED:
          return False, 0
        continue
      if not _ROW.fullmatch(row):
        return False, 0
      fields = [x for x in _FIELD.findall(row) if x.startswith('"')]
      count -= sum(x.count("\t") for x in fields)
    if fields and width and count not in (width, width + 1):
      return False, 0
    is_sure |= not width and len(fields) == count
    is_sure |= any('""' in field[1:-1] for field in fields)
    needed += sum("\t" in field or "\n" in field for field in fields)
    total += len(fields)
    width = width or count
    row = ""
  if row:
    return False, 0
  return is_sure or 0 < total == needed, total


def _quoted(
  path: pathlib.Path, lines: Iterable[str], dialect: Dialect
) -> Iterator[tuple[int, list[str]]]:
  csv.field_size_limit(_MAX_FIELD)
  reader = csv.reader(
    (f"{line}\n" for line in lines),
    delimiter=dialect.separator,
    skipinitialspace=dialect.is_spaced,
    strict=True,
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


def name_columns(
  path: pathlib.Path,
  rows: Iterator[tuple[int, list[str]]],
  header: tuple[str, ...],
  told: Callable[[str], None],
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
  """Returns the names of the columns, and the rows that are not the header.

  If the first row has one of the names in `header`, it is a header line, and
  its names are used. If it has none, it is an example, unless all of its fields
  are usual names of columns: then it is left out. If it has a field less
  than the next row, which begins with 0 or 1, the first column holds R's row
  names. A name is "" for a column without one (an index, or separators at the
  end).

  Raises:
    DataError: a name occurs twice.
  """
  first = next(rows, None)
  if first is None:
    return list(header), rows
  names = [name.strip().removeprefix("\ufeff") for name in first[1]]
  known = {name.casefold() for name in header}
  if header and known.isdisjoint(name.casefold() for name in names):
    if _USUAL.issuperset(name.casefold() for name in names):
      told(
        f"{path}:{first[0]}: the file has a header line ({', '.join(names)}); "
        f"left out, as the columns are named {', '.join(header)}"
      )
    else:
      rows = itertools.chain([first], rows)
    names = list(header)
  elif header and names != list(header):
    told(
      f"{path}:{first[0]}: the file has a header line ({', '.join(names)}); "
      "its names are used"
    )
  elif not header and (second := next(rows, None)):
    rows = itertools.chain([second], rows)
    if len(second[1]) == len(names) + 1 and second[1][0] in ("0", "1"):
      names = ["", *names]
  counts = collections.Counter(names)  # Of a million columns, in one pass.
  twice = {name for name in names if name and counts[name] > 1}
  if twice:
    raise DataError(
      f"{path}:1: the column {sorted(twice)[0]!r} occurs twice; expected a "
      "header with distinct names; if the file has no header, set task.header."
    )
  return names, rows
