"""Reads the input of verbs: lines of text, or rows with named fields.

Rows are those of JSON, Parquet and of a table with a header line, which
tables.py reads as it does for training. A Text records its file and line, so
that vectors and errors can be traced to their source.
"""

import itertools
import json
import pathlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import fields, lines, objects, tables
from maskedlm.runtime import console

STDIN = "-"
# Bytes of a line, which is tokenized whole: about 350 bytes of memory for each.
MAX_LINE = 1 << 22
# Files with a word, or a tree, on each line.
_OF_WORDS = (".conll", ".conllu", ".conllup", ".cupt", ".iob", ".iob2", ".bio")


class Text(NamedTuple):
  """A text, or a sentence whose words are given."""

  text: str  # If words are given, they are joined by spaces.
  words: tuple[str, ...] | None = None
  file: str = ""
  line: int = 0  # From 1.
  name: str = ""  # The id of its row, as of a sequence in FASTA.


def text_of_words(
  words: Sequence[str], *, file: str = "", line: int = 0
) -> Text:
  """Returns the Text of given words."""
  return Text(" ".join(words), tuple(words), file, line)


def read_texts(
  paths: Sequence[str],
  *,
  form: str = "",
  field: str = "text",
  seen: Counter | None = None,
) -> Iterator[Text]:
  """Yields the texts of files, in their order, in bounded memory.

  Args:
    paths: UTF-8 files; "-" is stdin. Blank lines are skipped.
    form: text, jsonl, or "": as has_fields decides.
    field: the field or column that holds the text. An object with "tokens", a
      list of strings, is a sentence of those words instead.
    seen: its "bytes" and "texts" are increased by the numbers read.

  Raises:
    DataError: there is no text, or a line is not UTF-8 or not such an object.
  """
  for file, line, entry in read_entries(paths, form, seen):
    if isinstance(entry, str):
      yield Text(entry, None, file, line)
    else:
      text = text_of_object(entry, field, file=file, line=line)
      yield text._replace(name=str(_id_of(entry).get("id", "")))


def read_entries(
  paths: Sequence[str], form: str, seen: Counter | None = None
) -> Iterator[tuple[str, int, str | dict]]:
  """Yields (file, line, text), or (file, line, fields) of a row that has some.

  Arguments and errors as for read_texts.
  """
  seen = Counter() if seen is None else seen
  for path in paths:
    for number, entry in _read_rows(path, form, seen):
      seen["texts"] += 1
      yield _name(path), number, entry
  if not seen["texts"]:
    files = ", ".join(map(_name, paths))
    raise DataError(f"{files}: no line with text; expected at least one.")


def has_fields(path: str, form: str) -> bool:
  """Returns whether the rows of a file have named fields.

  `form` is text or jsonl, or "" if the file decides (tables.is_table).
  """
  if form or path == STDIN:
    return form == "jsonl"
  return tables.is_table(path)


def _read_rows(
  path: str, form: str, seen: Counter
) -> Iterator[tuple[int, str | dict]]:
  """Yields (line, text or fields) of a file's rows that are not blank."""
  if not form and has_fields(path, form):
    for record in tables.read_records(path):
      yield record.line, dict(record.fields)
    return
  such_as = '{"text": "..."} or {"tokens": ["...", "..."]}'
  for number, line in read_lines(path, seen):
    where = f"{_name(path)}:{number}"
    if line.strip() and form == "jsonl":
      yield number, objects.parse_object(line, where, such_as=such_as)
    elif line.strip():
      yield number, line


def total_bytes(paths: Sequence[str]) -> int:
  """Returns the bytes of the texts; 0 if unknown (stdin, pipes, .gz, ...)."""
  files = [pathlib.Path(path) for path in paths]
  are_plain = all(path.is_file() for path in files)
  are_plain &= not any(x.lower().endswith(lines.COMPRESSED) for x in paths)
  if STDIN in paths or not are_plain:
    return 0
  return sum(file.stat().st_size for file in files)


def given_texts(
  texts: Sequence[str],
  path: str,
  parse: Callable[[str], Any] = str,
  *,
  form: str = "",
) -> Iterator[tuple[dict[str, Any], Any]]:
  """Yields (place, result of `parse`) for each input that is not blank.

  A place is {"line": number}, with the row's "id" if it has one.

  Args:
    texts: texts from the command line (place {}); if empty, the file is read.
    path, form: as for has_fields.
    parse: converts a line, or the fields of a row as JSON.

  Raises:
    DataError: the file can't be read, or `parse` refuses a line of it.
  """
  numbered = ((0, text) for text in texts if text.strip())
  rows = numbered if texts else _read_rows(path, form, Counter())
  for number, row in rows:
    try:
      parsed = parse(row if isinstance(row, str) else json.dumps(row))
    except DataError as error:
      where = f"{_name(path)}:{number}: " if number else ""
      raise DataError(f"{where}{error}") from None
    yield ({"line": number} if number else {}) | _id_of(row), parsed


def _id_of(row: str | dict) -> dict[str, Any]:
  """Returns {"id": ...} of a row that has one."""
  name = row.get("id") if isinstance(row, dict) else None
  return {"id": name} if isinstance(name, str | int) else {}


def request_groups(
  items: Iterable, most: int, texts: Sequence[str], paths: Sequence[str]
) -> Iterator[list]:
  """Yields lists of at most `most` items, to be processed together.

  The items are made from the texts on the command line or, if there are none,
  the lines of the files; "-" is stdin. Input typed at a terminal is yielded
  line by line, so that each line is answered at once.
  """
  at_keyboard = not texts and STDIN in paths and console.is_terminal(sys.stdin)
  items = iter(items)
  while group := list(itertools.islice(items, 1 if at_keyboard else most)):
    yield group


def read_lines(
  path: str, seen: Counter | None = None
) -> Iterator[tuple[int, str]]:
  """Yields (number from 1, line) of a UTF-8 file, without line ends.

  Args:
    path: "-" is stdin; a compressed file is decompressed.
    seen: its "bytes" are increased by the number read.

  Raises:
    DataError: the file can't be read, or a line is not UTF-8 or has more than
      MAX_LINE bytes.
  """
  name, seen = _name(path), Counter() if seen is None else seen
  suffix = tables.named_suffix(path)
  if suffix in (".parquet", *_OF_WORDS):
    content = "Parquet" if suffix == ".parquet" else "a word on each line"
    raise DataError(
      f"{name}: {content} is not read here; expected lines of text or JSON; "
      f"`predict` and `evaluate` read it as --data={name}."
    )
  if path == STDIN:
    raw_lines = iter(lambda: sys.stdin.buffer.readline(MAX_LINE + 1), b"")
  else:
    raw_lines = lines.raw_lines(path, most=MAX_LINE + 1)

  def counted() -> Iterator[bytes]:
    for number, line in enumerate(raw_lines, 1):
      if len(line) > MAX_LINE:
        raise DataError(
          f"{name}:{number}: the line has over {MAX_LINE:,} bytes; expected a "
          "text on each line: divide it into several, such as its paragraphs."
        )
      seen["bytes"] += len(line)
      yield line

  yield from lines.decode_lines(counted(), name)


def _name(path: str) -> str:
  return "stdin" if path == STDIN else path


def text_of_object(value: dict, field: str, *, file: str, line: int) -> Text:
  """Returns the Text of {"tokens": [...]} or {field: "..."}."""
  such_as = (
    '{"tokens": ["The", "bank", "."]}, or {"text": "..."}; --field names the '
    "text's field"
  )
  words, text = fields.words_or_text(value, f"{file}:{line}", such_as, field)
  if words is None:
    return Text(text or "", None, file, line)
  return text_of_words(words, file=file, line=line)
