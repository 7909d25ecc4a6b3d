"""CoNLL files: a word a line with its columns, a blank line ends a sentence.

Two formats, told apart by what is in them: columns between tabs or spaces
(CoNLL-2003 and its many kin), and CoNLL-U (universaldependencies.org/format).
Both are read with their line numbers, and written.
"""

import pathlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import tables

_DOCUMENT = "-DOCSTART-"
# ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC.
_CONLLU_COLUMNS = 10
_FORM = 1
CONLLU_TAGS = {"upos": 3, "xpos": 4}
_WORD_ID = re.compile(r"[0-9]+")
_OTHER_ID = re.compile(r"[0-9]+[-.][0-9]+")  # 3-4 a range, 8.1 an empty node.


class Line(NamedTuple):
  """A word's line."""

  number: int  # From 1.
  fields: tuple[str, ...]


class Sentence(NamedTuple):
  """Words and what is said of each."""

  words: tuple[str, ...]
  tags: tuple[str, ...] | None  # None: the file has none.
  lines: tuple[int, ...]  # Of the words, in the file.


def read(
  path: str | pathlib.Path,
  *,
  token_column: int = 0,
  tag_column: int = -1,
  conllu_tag: str = "upos",
) -> list[Sentence]:
  """The sentences of a file of either format.

  Args:
    path: named .conllu, or recognised as CoNLL-U by its first word's line: 10
      columns between tabs, the first of them a number.
    token_column, tag_column: of other formats, from 0, or from the end: -1 is
      the last. A file with a single column has words without tags.
    conllu_tag: upos or xpos. A file in which all are _ has no tags.

  Raises:
    DataError: no such file, not UTF-8, no word in it, a line with too few or
      too many columns, an empty word, a tag that is missing.
  """
  if is_conllu(path):
    sentences = [_conllu(path, block, conllu_tag) for block in blocks(path)]
    if all(set(s.tags) == {"_"} for s in sentences):
      return [s._replace(tags=None) for s in sentences]
    for sentence in sentences:
      if "_" in sentence.tags:
        line = sentence.lines[sentence.tags.index("_")]
        raise DataError(
          f"{path}:{line}: the word has no {conllu_tag.upper()} (_), though "
          "others have; expected one for each word or for none."
        )
    return sentences
  return [
    _columns(path, block, token_column, tag_column) for block in blocks(path)
  ]


def is_conllu(path: str | pathlib.Path) -> bool:
  """Whether the file is CoNLL-U, by its name or its first word's line."""
  if pathlib.Path(path).suffix == ".conllu":
    return True
  for text in tables.read_lines(pathlib.Path(path)):
    if not _is_blank(text) and not text.startswith(("#", _DOCUMENT)):
      fields = text.split("\t")
      return len(fields) == _CONLLU_COLUMNS and bool(
        _WORD_ID.fullmatch(fields[0]) or _OTHER_ID.fullmatch(fields[0])
      )
  return False


def blocks(path: str | pathlib.Path) -> Iterator[list[Line]]:
  """The lines of each sentence, all of as many columns.

  Columns are between tabs if the first line has one, else between spaces or
  tabs; so a word may have spaces in it where tabs separate. Lines that begin
  with -DOCSTART- end a sentence, and in CoNLL-U those with # are comments.

  Raises:
    DataError: no such file, not UTF-8, no word in it, a line with another
      number of columns than the first.
  """
  conllu, block, count, separator = is_conllu(path), [], 0, None
  for number, text in enumerate(tables.read_lines(pathlib.Path(path)), 1):
    if _is_blank(text) or text.startswith(_DOCUMENT):
      if block:
        yield block
      block = []
      continue
    if conllu and text.startswith("#"):
      continue
    if separator is None:
      tabs = conllu or "\t" in text
      separator = re.compile("\t" if tabs else "[ \t]+")
      name = "tabs" if tabs else "spaces"
    fields = tuple(separator.split(text.rstrip(" \t")))
    count = count or (_CONLLU_COLUMNS if conllu else len(fields))
    if len(fields) != count:
      raise DataError(
        f"{path}:{number}: {len(fields)} columns between {name}; expected "
        f"{count}, {'as CoNLL-U has' if conllu else 'as the first line has'}: "
        f"{_shortened(text)!r}."
      )
    block.append(Line(number, fields))
  if block:
    yield block
  if not count:
    raise DataError(
      f"{path}: no word in the file; expected a word and its tag on each line, "
      "and a blank line after each sentence."
    )


def write_columns(sentences: Iterable[Sequence[Sequence[str]]]) -> str:
  """Sentences of columns, words first, as text: tabs and a blank line each.

  What would end a field or a line is written as a space, nothing as _.
  """
  blocks = (
    "".join("\t".join(map(_field, row)) + "\n" for row in zip(*s, strict=True))
    for s in sentences
  )
  return "".join(f"{block}\n" for block in blocks)


def write_conllu(
  sentences: Iterable[tuple[Sequence[str], Sequence[str]]],
  *,
  conllu_tag: str = "upos",
) -> str:
  """(words, tags) as CoNLL-U, with _ in the columns of which nothing is known.

  A word is a line: what was a range of words or an empty node is not known.
  """
  text = []
  for words, tags in sentences:
    text.append(f"# text = {' '.join(map(_field, words))}\n")
    for number, (word, tag) in enumerate(zip(words, tags, strict=True), 1):
      fields = ["_"] * _CONLLU_COLUMNS
      fields[0], fields[_FORM] = str(number), _field(word)
      fields[CONLLU_TAGS[conllu_tag]] = _field(tag)
      text.append("\t".join(fields) + "\n")
    text.append("\n")
  return "".join(text)


def _columns(path, block: list[Line], token_column, tag_column) -> Sentence:
  count = len(block[0].fields)
  for name, column in (("token", token_column), ("tag", tag_column)):
    if not -count <= column < count:
      raise DataError(
        f"{path}:{block[0].number}: {name}_column={column}, but the line has "
        f"{count} columns: {_shortened(' '.join(block[0].fields))!r}; set "
        f"--config.task.{name}_column."
      )
  words = tuple(line.fields[token_column] for line in block)
  _check_words(path, block, words)
  numbers = tuple(line.number for line in block)
  if count == 1:
    return Sentence(words, None, numbers)
  if token_column % count == tag_column % count:
    raise DataError(
      f"{path}: token_column={token_column} and tag_column={tag_column} are "
      f"the same of the {count} columns; set --config.task.tag_column."
    )
  return Sentence(words, tuple(x.fields[tag_column] for x in block), numbers)


def _conllu(path, block: list[Line], conllu_tag: str) -> Sentence:
  kept = []
  for line in block:
    identity = line.fields[0]
    if _OTHER_ID.fullmatch(identity):  # Its words have lines of their own.
      continue
    if identity != str(len(kept) + 1):
      raise DataError(
        f"{path}:{line.number}: ID {identity!r}; expected {len(kept) + 1}, or "
        "a blank line before a new sentence."
      )
    kept.append(line)
  if not kept:
    raise DataError(f"{path}:{block[0].number}: a sentence without words.")
  words = tuple(line.fields[_FORM] for line in kept)
  _check_words(path, kept, words)
  return Sentence(
    words,
    tuple(line.fields[CONLLU_TAGS[conllu_tag]] for line in kept),
    tuple(line.number for line in kept),
  )


def _check_words(path, block: list[Line], words: Sequence[str]) -> None:
  if "" in words:
    raise DataError(
      f"{path}:{block[words.index('')].number}: the word is empty; expected "
      "one on each line, and a blank line after each sentence."
    )


def _is_blank(text: str) -> bool:
  return not text.strip(" \t")  # Other spaces may be words.


def _shortened(text: str) -> str:
  return text if len(text) <= 60 else f"{text[:57]}..."


def _field(text: str) -> str:
  return re.sub(r"[\t\n\r]", " ", text) or "_"
