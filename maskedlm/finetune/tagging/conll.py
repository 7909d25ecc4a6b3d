"""Reads and writes CoNLL files: a word per line, a blank line after a sentence.

There are two formats, distinguished by their content: columns separated by tabs
or spaces (CoNLL-2003 and its many variants), and CoNLL-U
(universaldependencies.org/format).
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
_OTHER_ID = re.compile(r"[0-9]+[-.][0-9]+")  # 3-4: a range; 8.1: an empty node.


class WordLine(NamedTuple):
  """The line of a word."""

  number: int  # The line number, from 1.
  fields: tuple[str, ...]


class TaggedSentence(NamedTuple):
  """Words and their tags."""

  words: tuple[str, ...]
  tags: tuple[str, ...] | None  # None if the file has none.
  lines: tuple[int, ...]  # Line numbers of the words.


def read_sentences(
  path: str | pathlib.Path,
  *,
  token_column: int = 0,
  tag_column: int = -1,
  conllu_tag: str = "upos",
) -> list[TaggedSentence]:
  """Reads the sentences of a file of either format.

  Args:
    path: the file; read as CoNLL-U if it is named .conllu, or if its first
      word's line has 10 columns separated by tabs, the first a number.
    token_column, tag_column: for other formats, from 0, or from the end: -1 is
      the last. A file with a single column has words without tags.
    conllu_tag: upos or xpos. If all are _, the file has no tags.

  Raises:
    DataError: the file is missing, not UTF-8 or has no word; a line has too few
      or too many columns, an empty word or no tag.
  """
  if is_conllu(path):
    sentences = [
      _conllu(path, block, conllu_tag) for block in read_blocks(path)
    ]
    if all(set(s.tags) == {"_"} for s in sentences):
      return [s._replace(tags=None) for s in sentences]
    for sentence in sentences:
      if "_" in sentence.tags:
        line = sentence.lines[sentence.tags.index("_")]
        raise DataError(
          f"{path}:{line}: the word has no {conllu_tag.upper()} (_), but "
          "others do; expected one for every word or for none."
        )
    return sentences
  return [
    _columns(path, block, token_column, tag_column)
    for block in read_blocks(path)
  ]


def is_conllu(path: str | pathlib.Path) -> bool:
  """Returns whether a file is CoNLL-U, by its name or its first word's line."""
  if pathlib.Path(path).suffix == ".conllu":
    return True
  for text in tables.read_lines(pathlib.Path(path)):
    if not _is_blank(text) and not text.startswith(("#", _DOCUMENT)):
      fields = text.split("\t")
      return len(fields) == _CONLLU_COLUMNS and bool(
        _WORD_ID.fullmatch(fields[0]) or _OTHER_ID.fullmatch(fields[0])
      )
  return False


def read_blocks(path: str | pathlib.Path) -> Iterator[list[WordLine]]:
  """Yields the lines of each sentence, all with the same number of columns.

  Columns are separated by tabs if the first line contains one (words may then
  contain spaces), else by spaces or tabs. Lines that begin with -DOCSTART- end
  a sentence; in CoNLL-U, lines that begin with # are comments.

  Raises:
    DataError: the file is missing, not UTF-8 or has no word, or a line has more
      or fewer columns than the first.
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
        f"{count}, as {'CoNLL-U' if conllu else 'the first line'} has: "
        f"{_shorten(text)!r}."
      )
    block.append(WordLine(number, fields))
  if block:
    yield block
  if not count:
    raise DataError(
      f"{path}: the file has no words; expected a word and its tag on each "
      "line, and a blank line after each sentence."
    )


def format_columns(sentences: Iterable[Sequence[Sequence[str]]]) -> str:
  """Returns sentences, each a sequence of columns, as tab-separated text.

  Characters that would end a field or a line become spaces, empty fields _.
  """
  blocks = (
    "".join("\t".join(map(_field, row)) + "\n" for row in zip(*s, strict=True))
    for s in sentences
  )
  return "".join(f"{block}\n" for block in blocks)


def format_conllu(
  sentences: Iterable[tuple[Sequence[str], Sequence[str]]],
  *,
  conllu_tag: str = "upos",
) -> str:
  """Returns (words, tags) as CoNLL-U text, with _ in the unknown columns.

  Each word becomes one line: ranges and empty nodes are not restored.
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


def _columns(
  path, block: list[WordLine], token_column, tag_column
) -> TaggedSentence:
  count = len(block[0].fields)
  for name, column in (("token", token_column), ("tag", tag_column)):
    if not -count <= column < count:
      raise DataError(
        f"{path}:{block[0].number}: {name}_column={column}, but the line has "
        f"{count} columns: {_shorten(' '.join(block[0].fields))!r}; set "
        f"--config.task.{name}_column."
      )
  words = tuple(line.fields[token_column] for line in block)
  _check_words(path, block, words)
  numbers = tuple(line.number for line in block)
  if count == 1:
    return TaggedSentence(words, None, numbers)
  if token_column % count == tag_column % count:
    raise DataError(
      f"{path}: token_column={token_column} and tag_column={tag_column} are "
      f"the same one of {count} columns; set --config.task.tag_column."
    )
  return TaggedSentence(
    words, tuple(x.fields[tag_column] for x in block), numbers
  )


def _conllu(path, block: list[WordLine], conllu_tag: str) -> TaggedSentence:
  kept = []
  for line in block:
    identity = line.fields[0]
    if _OTHER_ID.fullmatch(identity):  # Its words have their own lines.
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
  return TaggedSentence(
    words,
    tuple(line.fields[CONLLU_TAGS[conllu_tag]] for line in kept),
    tuple(line.number for line in kept),
  )


def _check_words(path, block: list[WordLine], words: Sequence[str]) -> None:
  if "" in words:
    raise DataError(
      f"{path}:{block[words.index('')].number}: the word is empty; expected "
      "one on each line, and a blank line after each sentence."
    )


def _is_blank(text: str) -> bool:
  return not text.strip(" \t")  # Other whitespace may be a word.


def _shorten(text: str) -> str:
  return text if len(text) <= 60 else f"{text[:57]}..."


def _field(text: str) -> str:
  return re.sub(r"[\t\n\r]", " ", text) or "_"
