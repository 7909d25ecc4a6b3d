"""Reads rows of fields from .csv, .tsv and .txt files.

  .csv         commas between fields; "..." around a field with a comma, a line
               end or a quotation mark, which is "" within
  .tsv, .txt   tabs between fields; quotation marks are text, as in GLUE

The first line names the columns, unless names are given. What was written by
other rules is refused: other separators, quoted fields between tabs, a second
header line.
"""

import collections
import csv
import itertools
import pathlib
import re
from collections.abc import Iterable, Iterator

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.lines import MAX_LINE, read_lines
from maskedlm.runtime import console

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_NAMES = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
# Names of columns: a row of nothing else is a header line.
USUAL = {"id", "idx", "index", "text", "text_b", "label", "labels", "class"}
USUAL |= {"sentence", "sentence1", "sentence2", "premise", "hypothesis"}
USUAL |= {"category", "target", "score", "title", "content", "review", "tweet"}
USUAL |= {"comment", "question", "answer", "query", "passage", "context"}
USUAL |= {"text_pair", "text1", "text2", "question1", "question2", "tokens"}
USUAL |= {"sequence"}
_QUOTED = re.compile('"(?:[^"]|"")*"')
_REWRITE = "write the file as .csv: commas, and quotation marks where needed"

Rows = Iterator[tuple[int, list[str]]]  # (line from 1, fields)


def read_rows(path: pathlib.Path, suffix: str) -> Rows:
  """Yields (line from 1, fields) of each row that is not blank.

  The suffix is one of SEPARATORS.

  Raises:
    DataError: see read_lines; a quotation mark is not closed, or fields between
      tabs are quoted.
  """
  split = _split_quoted if suffix == ".csv" else _split_at_tabs
  rows = split(path, read_lines(path))
  return ((n, row) for n, row in rows if len(row) > 1 or "".join(row).strip())


def _split_at_tabs(path: pathlib.Path, lines: Iterable[str]) -> Rows:
  quoted, doubled, within = 0, 0, 0
  for number, line in enumerate(lines, 1):
    row = line.split("\t")
    yield number, row
    if '"' not in line:
      continue
    marked = [field for field in row if '"' in field]
    around = [field for field in marked if _QUOTED.fullmatch(field)]
    quoted += len(around)
    within += len(marked) - len(around)
    if number == 1 and len(around) == len(row):
      raise DataError(
        f"{path}:{number}: the columns' names are in quotation marks, which "
        f"are text in {path.suffix}; {_REWRITE}."
      )
    if not doubled and any('""' in field[1:-1] for field in around):
      doubled = number
  if doubled and not within:
    raise DataError(
      f"{path}:{doubled}: fields are quoted as in .csv, but quotation marks "
      f"are text in {path.suffix}; {_REWRITE}."
    )
  if quoted and not within:
    console.log(
      f"{path}: {counted(quoted, 'field')} in quotation marks, which are taken "
      f"as text; if they are not, {_REWRITE}"
    )


def _split_quoted(path: pathlib.Path, lines: Iterable[str]) -> Rows:
  csv.field_size_limit(MAX_LINE)  # Characters; by default 131,072.
  reader = csv.reader((f"{line}\n" for line in lines), strict=True)
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
  path: pathlib.Path, suffix: str, rows: Rows, header: tuple[str, ...] = ()
) -> tuple[list[str], Rows]:
  """Returns the names of the columns, and the rows that follow the header.

  If names are given, and the first row has one of them, it is a header line,
  and its names are used: some files of GLUE have one, others haven't. A name is
  "" for a column without one (an index, or separators at the end). The suffix
  and the rows are those of read_rows.

  Raises:
    DataError: a name occurs twice; the first row has other separators; it seems
      to be a header line, though other names are given.
  """
  first = next(rows, None)
  if first is None:
    return list(header), rows
  where, names = f"{path}:{first[0]}", [name.strip() for name in first[1]]
  lower = {name.casefold() for name in names}
  if header and lower.isdisjoint(name.casefold() for name in header):
    if lower <= USUAL:
      raise DataError(
        f"{where}: {', '.join(names)} seem to be the names of the columns, but "
        f"task.header has {', '.join(header)}; name them alike, or delete the "
        "line."
      )
    return list(header), itertools.chain([first], rows)
  if header and names != list(header):
    console.log(
      f"{where}: the file has a header line ({', '.join(names)}); its names "
      "are used"
    )
  _check_separator(first[1], SEPARATORS[suffix], where)
  counts = collections.Counter(names)  # Of a million columns, in one pass.
  repeated = {name for name in names if name and counts[name] > 1}
  if repeated:
    raise DataError(
      f"{where}: the column {sorted(repeated)[0]!r} occurs twice; expected a "
      "header with distinct names; if the file has no header, set task.header."
    )
  return names, rows


def _check_separator(names: list[str], separator: str, where: str) -> None:
  """Raises DataError if a header line has other separators, or spaces."""
  other_separators = [x for x in _NAMES if len(names) == 1 and x in names[0]]
  if other_separators:
    remedy = f"write {_NAMES[separator]}"
    if other_separators[0] == "\t":
      remedy += ", or name the file .tsv"
    raise DataError(
      f"{where}: {_NAMES[other_separators[0]]} between columns; expected "
      f"{_NAMES[separator]}, by the file's name: {remedy}."
    )
  if any(name[:1] == " " and name.strip() for name in names):
    raise DataError(
      f"{where}: spaces before columns' names, as in {names[-1]!r}; they would "
      f"be text in each row: write {_NAMES[separator]} without spaces."
    )
