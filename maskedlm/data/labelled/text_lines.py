"""Reads texts from files of lines or of JSON objects, one per line.

A Text records its file and line, so that vectors and errors can be traced to
their source.
"""

import itertools
import pathlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from maskedlm.core.errors import ConfigError, DataError, check_name
from maskedlm.data.labelled import fields, lines, objects
from maskedlm.runtime import console

FORMATS = ("text", "jsonl")
STDIN = "-"
# Bytes of a line, which is tokenized whole: about 350 bytes of memory for each.
MAX_LINE = 1 << 22


class Text(NamedTuple):
  """A text, or a sentence whose words are given."""

  text: str  # If words are given, they are joined by spaces.
  words: tuple[str, ...] | None = None
  file: str = ""
  line: int = 0  # From 1.


def text_of_words(
  words: Sequence[str], *, file: str = "", line: int = 0
) -> Text:
  """Returns the Text of given words."""
  return Text(" ".join(words), tuple(words), file, line)


def check_files(
  paths: Sequence[str], *, form: str, option: str = "--input"
) -> None:
  """Checks that the files exist, before anything slow begins.

  Args:
    paths, form: as for read_texts.
    option: the option's name, for errors.

  Raises:
    ConfigError: the format is unknown, or a file is missing or a folder.
  """
  if form:
    check_name("--format", form, FORMATS)
  for path in paths:
    if path != STDIN and not pathlib.Path(path).exists():
      raise ConfigError(f"{option}={path}: no such file.")
    if path != STDIN and pathlib.Path(path).is_dir():
      raise ConfigError(f"{option}={path} is a folder; give its files.")


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
    form: one of FORMATS; "": jsonl for files with this ending, else text.
    field: the field of a JSON object that holds the text. An object with
      "tokens", a list of strings, is a sentence of those words instead.
    seen: its "bytes" and "texts" are increased by the numbers read.

  Raises:
    DataError: there is no text, or a line is not UTF-8 or not such an object.
  """
  for file, line, entry in read_entries(paths, form, seen):
    if isinstance(entry, str):
      yield Text(entry, None, file, line)
    else:
      yield text_of_object(entry, field, file=file, line=line)


def read_entries(
  paths: Sequence[str], form: str, seen: Counter | None = None
) -> Iterator[tuple[str, int, str | dict]]:
  """Yields (file, line, text); for JSON, with the object in place of the text.

  Arguments and errors as for read_texts.
  """
  seen = Counter() if seen is None else seen
  such_as = '{"text": "..."} or {"tokens": ["...", "..."]}'
  for path in paths:
    name, is_json = _name(path), is_jsonl(path, form)
    for number, line in read_lines(path, seen):
      if not line.strip():
        continue
      seen["texts"] += 1
      if is_json:
        line = objects.parse_object(line, f"{name}:{number}", such_as=such_as)
      yield name, number, line
  if not seen["texts"]:
    names = ", ".join(map(_name, paths))
    raise DataError(f"{names}: no line with text; expected at least one.")


def is_jsonl(path: str, form: str) -> bool:
  """Returns whether a file has JSON objects, by its form or else its name."""
  name = pathlib.Path(path)
  name = name.with_suffix("") if _is_compressed(path) else name
  return (form or name.suffix.lower().removeprefix(".")) == "jsonl"


def total_bytes(paths: Sequence[str]) -> int:
  """Returns the bytes of the texts; 0 if unknown (stdin, pipes, .gz, ...)."""
  found = [pathlib.Path(path) for path in paths]
  if (
    STDIN in paths
    or any(map(_is_compressed, paths))
    or not all(file.is_file() for file in found)
  ):
    return 0
  return sum(file.stat().st_size for file in found)


def given_texts(texts: Sequence[str], path: str) -> Iterator[tuple[int, str]]:
  """Yields (line, text) of a command's input, without blank lines.

  Args:
    texts: texts from the command line (line 0); if empty, the file is read.
    path: as for read_lines.

  Raises:
    DataError: as for read_lines.
  """
  found = ((0, text) for text in texts) if texts else read_lines(path)
  return ((number, text) for number, text in found if text.strip())


def request_groups(
  items: Iterable, most: int, texts: Sequence[str], paths: Sequence[str]
) -> Iterator[list]:
  """Yields lists of at most `most` items, to be processed together.

  Input typed at a terminal is yielded line by line, so that each line is
  answered at once.

  Args:
    items: made from the texts or, if there are none, the lines of the files.
    most: maximum number of items in a list.
    texts: texts from the command line.
    paths: input files; "-" is stdin.
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
  if path.lower().endswith(".parquet"):
    raise DataError(
      f"{name}: Parquet is not supported here; expected lines of text or JSON. "
      "For labelled data use --data."
    )
  if path == STDIN:
    found = iter(lambda: sys.stdin.buffer.readline(MAX_LINE + 1), b"")
  else:
    found = lines.raw_lines(path, most=MAX_LINE + 1)

  def counted() -> Iterator[bytes]:
    for number, line in enumerate(found, 1):
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


def _is_compressed(path: str) -> bool:
  return path.lower().endswith(lines.COMPRESSED)


def text_of_object(value: dict, field: str, *, file: str, line: int) -> Text:
  """Returns the Text of {"tokens": [...]} or {field: "..."}.

  Raises:
    DataError: the object has neither, or its value has another type.
  """
  form = fields.Format(
    {
      "words": fields.items(
        "tokens", of=fields.text_of, expected="a list of texts", optional=True
      ),
      "text": fields.text(field, optional=True),
    },
    such_as='{"tokens": ["The", "bank", "."]}, or {"text": "..."}; --field '
    "names the text's field",
  )
  where = f"{file}:{line}"
  words, text = fields.values(value, form, where).values()
  if words is not None:
    return text_of_words(words, file=file, line=line)
  if text is None:
    remedy = f"expected {form.such_as}."
    raise DataError(fields.missing(where, (field, "tokens"), value, remedy))
  return Text(text, None, file, line)
