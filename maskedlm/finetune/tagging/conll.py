"""Reads and writes sentences of words with tags.

  columns between tabs or spaces   CoNLL-2003 and its many variants: the columns
                                   that are asked for, in lines that have them
  CoNLL-U                          FORM, and UPOS, XPOS or the column asked for;
                                   ranges (3-4) and empty nodes (8.1) are
                                   skipped (universaldependencies.org/format)
  JSON, Parquet                    lists of words and tags (token_lists.py)

The format is recognised by the content. columns.py splits lines; the meaning of
entity tags is in common/bio.py.
"""

import itertools
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.finetune.tagging import columns, token_lists
from maskedlm.finetune.tagging.columns import TokenColumns, WordLine
from maskedlm.runtime import console

_FORM = 1
CONLLU_TAGS = {"upos": 3, "xpos": 4}
TOKEN_COLUMN, TAG_COLUMN = 0, -1  # The defaults; CoNLL-U has its own.
_HEADERS = (
  {"word", "words", "token", "tokens", "form"},
  {"tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags", "pos"},
)


class TaggedSentence(NamedTuple):
  """Words and their tags."""

  words: tuple[str, ...]
  tags: tuple[str, ...] | None  # None if the file has none.
  lines: tuple[int, ...]  # Line numbers of the words.


def read_sentences(
  path: str | pathlib.Path,
  *,
  token_column: int = TOKEN_COLUMN,
  tag_column: int = TAG_COLUMN,
  conllu_tag: str = "upos",
  entities: bool = False,
) -> list[TaggedSentence]:
  """Reads the sentences of a file of any format.

  Args:
    path: the file.
    token_column, tag_column: from 0, or from the end: -1 is the last. A file
      with a single column has words without tags. In CoNLL-U, 0 and -1 are FORM
      and conllu_tag.
    conllu_tag: upos or xpos.
    entities: whether tags are entities'; selects the field of JSON and Parquet.

  Raises:
    DataError: the file is missing, can't be read as text or has no word; a line
      lacks a column, or has an empty word or no tag, but others have one; an
      option doesn't apply to the format.
  """
  given = (token_column, tag_column) != (TOKEN_COLUMN, TAG_COLUMN)
  if token_lists.is_format(path):
    if given:
      raise DataError(
        f"{path}: its fields have names, so task.token_column={token_column} "
        f"and task.tag_column={tag_column} have no effect: leave them out, or "
        "beside a checkpoint set --config.task.token_column=0 "
        "--config.task.tag_column=-1."
      )
    rows = token_lists.read_rows(
      path, conllu_tag=None if entities else conllu_tag
    )
    return _checked_tags(
      path, [TaggedSentence(words, tags, lines) for words, tags, lines in rows]
    )
  found = columns.read_columns(path)
  by_name = conllu_tag != "upos" and tag_column == TAG_COLUMN
  if by_name and not found.is_conllu and found.count > 1:
    raise DataError(
      f"{path}: not CoNLL-U, so task.conllu_tag={conllu_tag} has no effect: "
      "set --config.task.tag_column to the tag's column, or "
      "--config.task.conllu_tag=upos for the last one."
    )
  return select_columns(
    found,
    token_column=token_column,
    tag_column=tag_column,
    conllu_tag=conllu_tag,
  )


def select_columns(
  found: TokenColumns,
  *,
  token_column: int = TOKEN_COLUMN,
  tag_column: int = TAG_COLUMN,
  conllu_tag: str = "upos",
) -> list[TaggedSentence]:
  """Returns the words and tags of a file; arguments as for read_sentences.

  Raises:
    DataError: as for read_sentences.
  """
  sentences = found.sentences
  if found.is_conllu:
    sentences = [_syntactic_words(found.path, s) for s in sentences]
    if token_column == TOKEN_COLUMN:
      token_column = _FORM
    if tag_column == TAG_COLUMN:
      tag_column = CONLLU_TAGS[conllu_tag]
  count = found.count
  in_range = all(-count <= i < count for i in (token_column, tag_column))
  if in_range and count > 1 and token_column % count == tag_column % count:
    raise DataError(
      f"{found.path}: token_column={token_column} and tag_column={tag_column} "
      f"are the same one of {count} columns; set --config.task.tag_column."
    )
  made = [
    _tagged(found, sentence, token_column, tag_column) for sentence in sentences
  ]
  made = _without_header(found.path, made)
  _check_words(found, made, token_column)
  return _checked_tags(found.path, made)


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
      fields = ["_"] * columns.CONLLU_COLUMNS
      fields[0], fields[_FORM] = str(number), _field(word)
      fields[CONLLU_TAGS[conllu_tag]] = _field(tag)
      text.append("\t".join(fields) + "\n")
    text.append("\n")
  return "".join(text)


def _tagged(
  found: TokenColumns, lines: Sequence[WordLine], token_column, tag_column
) -> TaggedSentence:
  words, tags = [], []
  for line in lines:
    words.append(_field_of(found, line, "token", token_column))
    if not words[-1]:
      raise DataError(
        f"{found.path}:{line.number}: the word is empty; expected one on each "
        "line, and a blank line after each sentence."
      )
    tags.append(_field_of(found, line, "tag", tag_column).strip())
    if not tags[-1]:
      raise DataError(f"{found.path}:{line.number}: the tag is empty.")
  numbers = tuple(line.number for line in lines)
  has_tags = found.count > 1
  return TaggedSentence(
    tuple(words), tuple(tags) if has_tags else None, numbers
  )


def _field_of(
  found: TokenColumns, line: WordLine, name: str, column: int
) -> str:
  count = len(line.fields)
  if count == found.count and not -count <= column < count:
    raise DataError(
      f"{found.path}:{line.number}: {name}_column={column}, but the line has "
      f"{counted(count, 'column')}: "
      f"{columns.shorten(' '.join(line.fields))!r}; set "
      f"--config.task.{name}_column."
    )
  # Columns of other lines are counted from the left alone.
  if count != found.count and not 0 <= column < count:
    raise columns.ragged_error(found, line)
  return line.fields[column]


def _syntactic_words(path: str, lines: Sequence[WordLine]) -> list[WordLine]:
  """Returns the lines without ranges and empty nodes."""
  kept: list[WordLine] = []
  for line in lines:
    identity = line.fields[0]
    if columns.OTHER_ID.fullmatch(identity):  # Its words have their own lines.
      continue
    if identity != str(len(kept) + 1):
      raise DataError(
        f"{path}:{line.number}: ID {identity!r}; expected {len(kept) + 1}, or "
        "a blank line before a new sentence."
      )
    kept.append(line)
  if not kept:
    raise DataError(f"{path}:{lines[0].number}: a sentence without words.")
  return kept


def _without_header(
  path: str, sentences: list[TaggedSentence]
) -> list[TaggedSentence]:
  """Returns the sentences without a first line of names of columns."""
  words, tags, lines = sentences[0]
  if tags is None or any(
    text.lower() not in names
    for text, names in zip((words[0], tags[0]), _HEADERS, strict=True)
  ):
    return sentences
  console.log(f"{path}:{lines[0]}: left out, the names of the columns")
  rest = TaggedSentence(words[1:], tags[1:], lines[1:])
  kept = [*([rest] if rest.words else []), *sentences[1:]]
  if not kept:
    raise DataError(f"{path}: has no words but the names of the columns.")
  return kept


def _check_words(
  found: TokenColumns, sentences: Sequence[TaggedSentence], column: int
) -> None:
  """Checks that a column of words is not one of numbers, or a file's name.

  Raises:
    DataError: each sentence counts from a number; all words are the same.
  """
  if found.count < 3 or max(len(s.words) for s in sentences) < 2:
    return
  words = {word for s in sentences for word in s.words}
  if all(_are_consecutive(s.words) for s in sentences):
    what = "numbers the words"
  elif len(words) == 1 and "/" in min(words):
    what = f"is always {min(words)!r}"
  else:
    return
  raise DataError(
    f"{found.path}:{sentences[0].lines[0]}: column {column} {what}; set "
    "--config.task.token_column to the column of the words, from 0."
  )


def _are_consecutive(words: Sequence[str]) -> bool:
  return all(re.fullmatch("[0-9]+", word) for word in words) and all(
    int(b) == int(a) + 1 for a, b in itertools.pairwise(words)
  )


def _checked_tags(
  path: str | pathlib.Path, sentences: list[TaggedSentence]
) -> list[TaggedSentence]:
  """Returns the sentences, without tags if all are _ (not annotated).

  Raises:
    DataError: some words have a tag, others don't.
  """
  if all(s.tags is None or set(s.tags) == {"_"} for s in sentences):
    return [s._replace(tags=None) for s in sentences]
  for sentence in sentences:
    if sentence.tags is None or "_" in sentence.tags:
      place = 0 if sentence.tags is None else sentence.tags.index("_")
      raise DataError(
        f"{path}:{sentence.lines[place]}: the word has no tag (_), but others "
        "do; expected one for every word or for none."
      )
  return sentences


def _field(text: str) -> str:
  return re.sub(r"[\t\n\r]", " ", text) or "_"
