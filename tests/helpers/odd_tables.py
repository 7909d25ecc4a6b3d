"""Writes labelled tables in all the ways of the world, and damages them.

A file is made from rules: a table of a task, a program's way of writing it, how
it is packed, and what is wrong with it. tests/data/odd/ reads them all.
"""

import bz2
import csv
import gzip
import io
import itertools
import json
import lzma
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

TEXTS = (
  *("a plain text", 'He said "no" to me', "one, two; three | four"),
  *("{laughs} no", "[VIDEO] see this", "Größe, 猫", "it's", "=1+1", "#hash"),
  *("two\nlines", "a\ttab", '"quoted"', "NA", "-", "  spaces  "),
)


class Table(NamedTuple):
  """The columns of a file and its rows, with values of JSON's types."""

  columns: list[str]
  rows: list[list[Any]]
  text: str  # The column of the text.
  label: str


class OddFile(NamedTuple):
  """A file, and what is known of it."""

  name: str
  data: bytes
  rows: int  # Rows that a reader uses, or reports.
  texts: list[str] | None  # If it is sound, the texts in their order.


# --- Tables of the tasks ---


def classification(as_objects: bool) -> Table:
  rows = [[text, "ab"[i % 2], i] for i, text in enumerate(TEXTS)]
  return Table(["text", "label", "id"], rows, "text", "label")


def regression(as_objects: bool) -> Table:
  rows = [[text, i / 2] for i, text in enumerate(TEXTS)]
  return Table(["text", "label"], rows, "text", "label")


def multi_label(as_objects: bool) -> Table:
  sets = itertools.cycle((["x"], [], ["x", "y"]))
  rows = [
    [text, labels if as_objects else json.dumps(labels)]
    for text, labels in zip(TEXTS, sets, strict=False)
  ]
  return Table(["text", "labels"], rows, "text", "labels")


def multiple_choice(as_objects: bool) -> Table:
  if as_objects:
    rows = [[x, ["one", "two"], i % 2] for i, x in enumerate(TEXTS)]
    return Table(["context", "choices", "label"], rows, "context", "label")
  rows = [[x, "one", "two", i % 2] for i, x in enumerate(TEXTS)]
  columns = ["context", "choice0", "choice1", "label"]
  return Table(columns, rows, "context", "label")


def retrieval(as_objects: bool) -> Table:
  rows = [[f"query {i}", text, 1] for i, text in enumerate(TEXTS)]
  return Table(["query", "passage", "label"], rows, "passage", "label")


TABLES = {
  "classification": classification,
  "regression": regression,
  "multi_label": multi_label,
  "multiple_choice": multiple_choice,
  "retrieval": retrieval,
}

# --- Programs ---


def _fields(
  table: Table, separator: str, quoting: int, *, end: str = "\n"
) -> str:
  out = io.StringIO()
  writer = csv.writer(
    out, delimiter=separator, quoting=quoting, lineterminator=end
  )
  writer.writerow(table.columns)
  writer.writerows(
    [["" if x is None else x for x in row] for row in table.rows]
  )
  return out.getvalue()


def _indexed(table: Table, names: list[str]) -> Table:
  rows = [[str(i), *row] for i, row in enumerate(table.rows)]
  return table._replace(columns=[*names, *table.columns], rows=rows)


def _raw(table: Table) -> str:
  lines = [table.columns, *table.rows]
  return "".join(
    "\t".join(_flat("" if x is None else str(x)) for x in line) + "\n"
    for line in lines
  )


def _flat(text: str) -> str:
  return text.replace("\t", " ").replace("\n", " ")


def _objects(table: Table) -> list[dict[str, Any]]:
  return [dict(zip(table.columns, row, strict=False)) for row in table.rows]


def _lines(table: Table, **options) -> str:
  return "".join(json.dumps(x, **options) + "\n" for x in _objects(table))


def _parquet(table: Table) -> bytes:
  out = io.BytesIO()
  pq.write_table(pa.Table.from_pylist(_objects(table)), out)
  return out.getvalue()


MINIMAL, ALL = csv.QUOTE_MINIMAL, csv.QUOTE_ALL
# Name -> (suffix, the text of a table).
DELIMITED: dict[str, tuple[str, Callable[[Table], str]]] = {
  "pandas": (".csv", lambda t: _fields(t, ",", MINIMAL)),
  "crlf": (".csv", lambda t: _fields(t, ",", MINIMAL, end="\r\n")),
  "quote_all": (".csv", lambda t: _fields(t, ",", ALL)),
  "index": (".csv", lambda t: _fields(_indexed(t, [""]), ",", MINIMAL)),
  "unnamed": (
    ".csv",
    lambda t: _fields(_indexed(t, ["Unnamed: 0"]), ",", MINIMAL),
  ),
  "glue": (".tsv", _raw),
  "glue_txt": (".txt", _raw),
}
OBJECTS: dict[str, tuple[str, Callable[[Table], str | bytes]]] = {
  "lines": (".jsonl", lambda t: _lines(t, ensure_ascii=False)),
  "lines_ascii": (".ndjson", _lines),
  "lines_json": (".json", _lines),
  "list": (".json", lambda t: json.dumps(_objects(t))),
  "list_indented": (".json", lambda t: json.dumps(_objects(t), indent=2)),
  "list_jsonl": (".jsonl", lambda t: json.dumps(_objects(t), indent=1)),
  "data": (".json", lambda t: json.dumps({"data": _objects(t)})),
  "parquet": (".parquet", _parquet),
}
PROGRAMS = {**DELIMITED, **OBJECTS}

# --- How files are packed: (name, data) -> (name, data) ---

PACKED: dict[str, Callable[[str, bytes], tuple[str, bytes]]] = {
  "plain": lambda name, data: (name, data),
  "bom": lambda name, data: (
    name,
    data if data.startswith(b"PAR1") else b"\xef\xbb\xbf" + data,
  ),
  "gzip": lambda name, data: (f"{name}.gz", gzip.compress(data, mtime=0)),
  "gzip_unsaid": lambda name, data: (name, gzip.compress(data, mtime=0)),
  "zstd": lambda name, data: (f"{name}.zst", zstandard.compress(data)),
  "bzip2": lambda name, data: (f"{name}.bz2", bz2.compress(data)),
  "xz": lambda name, data: (f"{name}.xz", lzma.compress(data)),
  "upper": lambda name, data: (name.upper(), data),
  "no_last_line_end": lambda name, data: (
    name,
    data if data.startswith(b"PAR1") else data.rstrip(b"\r\n"),
  ),
}

# --- What is wrong: in a table, or in its bytes ---


def _set(name_of: str, value: Any) -> Callable[[Table], Table]:
  def change(table: Table) -> Table:
    place = table.columns.index(getattr(table, name_of))
    rows = [list(row) for row in table.rows]
    rows[3][place] = value
    return table._replace(rows=rows)

  return change


def _duplicate(table: Table) -> Table:
  rows = [[*row, row[0]] for row in table.rows]
  return table._replace(columns=[*table.columns, table.columns[0]], rows=rows)


def _ragged(change: Callable[[list], list]) -> Callable[[Table], Table]:
  return lambda table: table._replace(
    rows=[change(r) if i == 2 else r for i, r in enumerate(table.rows)]
  )


def _without(name_of: str) -> Callable[[Table], Table]:
  def change(table: Table) -> Table:
    place = table.columns.index(getattr(table, name_of))
    return table._replace(
      columns=[x for i, x in enumerate(table.columns) if i != place],
      rows=[[x for i, x in enumerate(r) if i != place] for r in table.rows],
    )

  return change


WRONG_TABLES: dict[str, Callable[[Table], Table]] = {
  "null_text": _set("text", None),
  "empty_text": _set("text", ""),
  "blank_text": _set("text", "  "),
  "list_text": _set("text", ["a", "b"]),
  "object_text": _set("text", {"a": "b"}),
  "number_text": _set("text", 42),
  "boolean_text": _set("text", True),
  "none_text": _set("text", "None"),
  "null_label": _set("label", None),
  "dash_label": _set("label", "-"),
  "minus_one": _set("label", -1),
  "list_label": _set("label", ["a", 3]),
  "object_label": _set("label", {"a": "b"}),
  "hot_label": _set("label", [1, 0, 1]),
  "other_label": _set("label", "seven"),
  "no_text_column": _without("text"),
  "no_label_column": _without("label"),
  "empty_row": lambda t: t._replace(rows=[*t.rows, [None] * len(t.columns)]),
  "header_again": lambda t: t._replace(
    rows=[*t.rows[:3], t.columns, *t.rows[3:]]
  ),
  "duplicate_column": _duplicate,
  "short_row": _ragged(lambda row: row[:-1]),
  "long_row": _ragged(lambda row: [*row, "more"]),
  "padded_row": _ragged(lambda row: [*row, "", ""]),
  "no_rows": lambda t: t._replace(rows=[]),
}
WRONG_BYTES: dict[str, Callable[[bytes], bytes]] = {
  "empty_file": lambda data: b"",
  "blank_lines": lambda data: b"\n\n" + data + b"\n\n \n",
  "utf16": lambda data: data.decode("utf-8").encode("utf-16"),
  "utf16_unmarked": lambda data: data.decode("utf-8").encode("utf-16-le"),
  "cp1252": lambda data: data + "\nKöln – “no”".encode("cp1252"),
  "cut_off": lambda data: data[: len(data) // 2],
  "carriage_returns": lambda data: data.replace(b"\r", b"").replace(
    b"\n", b"\r"
  ),
  "nul": lambda data: data.replace(b"plain", b"pl\0in"),
  "html": lambda data: b"<!DOCTYPE html>\n<html><body>404</body></html>",
  "zip": lambda data: b"PK\x03\x04" + data,
  "sqlite": lambda data: b"SQLite format 3\0" + data,
  "open_quote": lambda data: data + b'"never closed,\t;1\n',
}
# Those after which the number of rows is not that of the table.
_UNCOUNTED = ("cut_off", "carriage_returns", "open_quote", "cp1252")


def make_files(task: str, program: str) -> Iterator[OddFile]:
  """Yields the files of a task as a program writes them, sound and damaged."""
  suffix, write = PROGRAMS[program]
  table = TABLES[task](program in OBJECTS)

  def data_of(table: Table) -> bytes:
    made = write(table)
    return made if isinstance(made, bytes) else made.encode("utf-8")

  place = table.columns.index(table.text)
  texts = [row[place] for row in table.rows]
  if write is _raw:
    texts = list(map(_flat, texts))
  for packing, pack in PACKED.items():
    name, data = pack(f"{packing}{suffix}", data_of(table))
    is_read = program != "parquet" or data.startswith(b"PAR1")
    yield OddFile(name, data, len(table.rows), texts if is_read else None)
  for wrong, change in WRONG_TABLES.items():
    changed = change(table)
    try:
      data = data_of(changed)
    except pa.ArrowException:  # A column has one type in Parquet.
      continue
    yield OddFile(f"{wrong}{suffix}", data, len(changed.rows), None)
  if program != "parquet":
    for wrong, damage in WRONG_BYTES.items():
      count = -1 if wrong in _UNCOUNTED else len(table.rows)
      name = f"{wrong}{suffix}"
      yield OddFile(name, damage(data_of(table)), count, None)
