"""Splits a file of token columns into sentences of lines.

A word per line, its columns between tabs (words may then contain spaces) or
spaces, and a blank line after a sentence. What else files have:

  -DOCSTART-, #begin document      ends a sentence
  # text, #<tab>text               before a sentence, if it has another number
                                   of columns than words have, or the form
                                   "# key = value": a comment, counted in a log
                                   line
  #, #tag with their columns       words
  BOM, CRLF, spaces at line ends,  dropped
  around columns
  fewer or more columns            kept: conll.py reads the columns asked for
  commas (.csv)                    refused
"""

import pathlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.lines import read_lines
from maskedlm.runtime import console

# ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC.
CONLLU_COLUMNS = 10
WORD_ID = re.compile(r"[0-9]+")
OTHER_ID = re.compile(r"[0-9]+[-.][0-9]+")  # 3-4: a range; 8.1: an empty node.
_DOCUMENT = ("-DOCSTART-", "#begin document", "#end document")
_KEY = re.compile(r"#[ \t]*([\w.:-]+ = |(id|sent_id|newdoc|newpar)\b)")


class WordLine(NamedTuple):
  """The line of a word."""

  number: int  # The line number, from 1.
  fields: tuple[str, ...]


class TokenColumns(NamedTuple):
  """A file of token columns."""

  path: str
  sentences: list[list[WordLine]]
  count: int  # The number of columns that most lines have.
  separator: str  # What is between columns, for errors.
  is_conllu: bool


def read_columns(path: str | pathlib.Path) -> TokenColumns:
  """Returns the sentences of a file; CoNLL-U has 10 columns in every line.

  A file is CoNLL-U if it is named .conllu, or if its first word's line has 10
  columns separated by tabs, the first a number.

  Raises:
    DataError: the file is missing, can't be read as text or has no word; a line
      of CoNLL-U has more or fewer columns; columns are between commas.
  """
  lines = [
    (number, text.rstrip(" \t"))
    for number, text in enumerate(read_lines(pathlib.Path(path)), 1)
  ]
  conllu = _is_conllu(path, [text for _, text in lines])
  words = [text for _, text in lines if text and not text.startswith(_DOCUMENT)]
  # Comments may have any form, so the others decide.
  plain = [
    text for text in words if not text.startswith(("# ", "#\t"))
  ] or words
  tabs = conllu or 2 * sum("\t" in text for text in plain) >= len(plain)
  if pathlib.Path(path).suffix.lower() == ".csv" and not tabs:
    raise DataError(
      f"{path}: columns between commas; expected a word per line, its columns "
      "between tabs or spaces."
    )
  split = _between_tabs if tabs else _between_spaces
  counts = Counter(len(split(text)) for text in plain)
  count = CONLLU_COLUMNS if conllu else max(counts, key=counts.get, default=0)

  def is_comment(text: str) -> bool:
    if conllu:  # Words begin with their number.
      return text.startswith("#")
    return text.startswith(("# ", "#\t")) and (
      len(split(text)) != count
      or _KEY.match(text) is not None
      or ("\t" in text and not tabs)
      or (" " in split(text)[-1])  # A tag has no spaces.
    )

  sentences: list[list[WordLine]] = [[]]
  comments = []
  for number, text in lines:
    if not text or text.startswith(_DOCUMENT):
      if sentences[-1]:
        sentences.append([])
    elif is_comment(text) and (conllu or not sentences[-1]):
      comments.append(number)
    else:
      sentences[-1].append(WordLine(number, split(text)))
  found = TokenColumns(
    path=str(path),
    sentences=[sentence for sentence in sentences if sentence],
    count=count,
    separator="tabs" if tabs else "spaces",
    is_conllu=conllu,
  )
  if not found.sentences:
    raise DataError(
      f"{path}: the file has no words; expected a word and its tag on each "
      "line, and a blank line after each sentence."
    )
  strange = [x for s in sentences for x in s if len(x.fields) != count]
  if conllu and strange:
    raise ragged_error(found, strange[0])
  for what, numbers in (
    ("comments (# ...)", comments if not conllu else []),
    (
      f"lines with other than {counted(count, 'column')}",
      [x.number for x in strange],
    ),
  ):
    if numbers:
      console.log(
        f"{path}: {what}: {len(numbers):,}, the first in line {numbers[0]}"
      )
  return found


def ragged_error(columns: TokenColumns, line: WordLine) -> DataError:
  """Returns the error for a line that lacks a column."""
  text = shorten(" ".join(line.fields))
  others = "CoNLL-U has" if columns.is_conllu else "most lines have"
  hint = (
    "; is it a comment? Then put it before a sentence, as '# text'"
    if text.startswith("#") and not columns.is_conllu
    else ""
  )
  return DataError(
    f"{columns.path}:{line.number}: {counted(len(line.fields), 'column')} "
    "between "
    f"{columns.separator}; expected {columns.count}, as {others}: {text!r}"
    f"{hint}."
  )


def shorten(text: str) -> str:
  """Returns at most 60 characters of a text."""
  return text if len(text) <= 60 else f"{text[:57]}..."


def _is_conllu(path: str | pathlib.Path, lines: Sequence[str]) -> bool:
  if pathlib.Path(path).suffix.lower() == ".conllu":
    return True
  for text in lines:
    if text and not text.startswith(("#", _DOCUMENT[0])):
      fields = text.split("\t")
      return len(fields) == CONLLU_COLUMNS and bool(
        WORD_ID.fullmatch(fields[0]) or OTHER_ID.fullmatch(fields[0])
      )
  return False


def _between_tabs(text: str) -> tuple[str, ...]:
  # A word may be a space.
  return tuple(field.strip(" ") or field for field in text.split("\t"))


def _between_spaces(text: str) -> tuple[str, ...]:
  return tuple(re.split("[ \t]+", text.lstrip(" \t")))
