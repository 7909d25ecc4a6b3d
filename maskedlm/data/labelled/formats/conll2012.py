"""CoNLL-2012: documents of sentences, with trees, roles, entities and chains.

  #begin document (bc/cnn/00/cnn_0001); part 000
  bc/cnn/00/cnn_0001 0 0 Ann  NNP (TOP(S(NP*) - - - Ann (PERSON*) (ARG0*) (7)
  bc/cnn/00/cnn_0001 0 1 lost VBD (VP* lose 02 - Ann * (V*) -
  bc/cnn/00/cnn_0001 0 2 it   PRP (NP*)))) - - - Ann * (ARG1*) (12)

  #end document

The columns are document, part, word number, word, part of speech, tree, lemma,
frameset, sense, speaker, entity, one of arguments for each word with a
frameset, and marks of chains. Files may lack the last ones: a reader asks for
those that it needs. https://conll.cemantix.org/2012/data.html
"""

import functools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bad_rows
from maskedlm.data.labelled.bio import Entity
from maskedlm.data.labelled.columns import Block, Columns, format_columns
from maskedlm.data.labelled.formats.span_columns import read_spans, span_column

PART, NUMBER, WORD, TAG, BIT, LEMMA, FRAMESET = 1, 2, 3, 4, 5, 6, 7
ENTITY, FIRST_ROLES, ALL = 10, 11, 12
CHAINS = -1
_LEAST = 5  # Columns.
_BEGIN, _END = "#begin document", "#end document"
_NAME = re.compile(r"\((.*)\); part (\d+)")


class Sentence(NamedTuple):
  """The lines of a sentence."""

  path: str
  block: Block

  @property
  def where(self) -> str:
    """FILE:LINE of the first word."""
    return f"{self.path}:{self.block.numbers[0]}"

  def column(self, number: int) -> tuple[str, ...]:
    """Returns a column; raises DataError if there is none."""
    count = len(self.block.rows[0])
    if number >= count:
      raise DataError(
        f"{self.where}: {counted(count, 'column')}; expected CoNLL-2012 "
        f"with at least {number + 1}: document, part, number, word, part of "
        "speech, tree, lemma, frameset, sense, speaker, entity, arguments, "
        "chains."
      )
    return tuple(row[number] for row in self.block.rows)

  def spans(self, number: int) -> list[Entity]:
    """Returns the spans of a column; see read_spans for errors."""
    return read_spans(self.path, self.block, number)


class Document(NamedTuple):
  """The sentences between #begin document and #end document."""

  id: str  # (NAME); part 000.
  where: str  # FILE:LINE of its beginning.
  sentences: list[Sentence]


def is_format(columns: Columns) -> bool:
  """Returns whether columns are CoNLL-2012's, by the first word's."""
  fields = columns.blocks[0].rows[0]
  return (
    len(fields) >= ALL and fields[PART].isdecimal() and fields[NUMBER] == "0"
  )


def read_sentences(columns: Columns) -> list[Sentence]:
  """Returns the sentences, whether or not they are in documents.

  Raises:
    DataError: there are fewer than 5 columns; with all columns, words are not
      numbered 0, 1, 2, ...
  """
  is_numbered = is_format(columns)

  def read(block: Block) -> Sentence:
    sentence = _sentence(columns.path, block)
    for i, number in enumerate(sentence.column(NUMBER) if is_numbered else ()):
      if number != str(i):
        raise DataError(
          f"{sentence.path}:{sentence.block.numbers[i]}: the word number "
          f"{number!r}; expected {i}, or a blank line before a new sentence."
        )
    return sentence

  return [*bad_rows.map_rows(read, columns.blocks)]


def read_documents(columns: Columns) -> list[Document]:
  """Returns the documents.

  Raises:
    DataError: see read_sentences; a sentence is not in a document, or a
      document doesn't begin or end.
  """
  documents: list[Document] = []
  read = functools.partial(_sentence, columns.path)
  is_open = False
  for block in (*columns.blocks, Block((), (), columns.after)):
    for number, text in block.before:
      where, begins = f"{columns.path}:{number}", text.startswith(_BEGIN)
      if not begins and not text.startswith(_END):
        continue
      if begins == is_open:
        place = "within" if is_open else "outside of"
        raise _unpaired(where, f"{text[:40]!r} {place} a document")
      is_open = begins
      if begins:
        name = text.removeprefix(_BEGIN).strip()
        documents.append(Document(name, where, []))
    if block.rows:
      if not is_open:
        where = f"{columns.path}:{block.numbers[0]}"
        raise _unpaired(where, "a word outside of a document")
      documents[-1].sentences.extend(bad_rows.map_rows(read, [block]))
  if is_open:
    raise _unpaired(documents[-1].where, "the document does not end")
  return documents


def _unpaired(where: str, problem: str) -> DataError:
  return DataError(
    f"{where}: {problem}; expected a line {_BEGIN} (NAME); part 000 before the "
    f"words of each document, and a line {_END} after them."
  )


def _sentence(path: str, block: Block) -> Sentence:
  sentence = Sentence(path, block)
  sentence.column(_LEAST - 1)
  return sentence


def format_documents(
  documents: Iterable[tuple[str, Iterable[Sequence[Sequence[str]]]]],
) -> str:
  """Returns documents, (id, sentences as of format_sentence), as a file."""
  text = []
  for name, sentences in documents:
    match = _NAME.fullmatch(name)
    key, part = (match[1], int(match[2])) if match else (name or "input", 0)
    blocks = (
      [[key] * len(x[0]), [str(part)] * len(x[0]), *x] for x in sentences
    )
    text.append(f"{_BEGIN} ({key}); part {part:03d}\n")
    text += [format_columns(blocks, " "), f"{_END}\n"]
  return "".join(text)


def sentence_columns(
  words: Sequence[str],
  *,
  senses: Sequence[str] = (),
  roles: Sequence[Sequence[Entity]] = (),
  chains: Sequence[str] = (),
) -> list[Sequence[str]]:
  """Returns the columns of a sentence from the word's number on.

  Those that are unknown have - or *. `senses` are of each word, LEMMA.FRAMESET,
  or "" for no predicate, `roles` the spans of each predicate's arguments, and
  `chains` the words' marks.
  """
  count = len(words)
  blank, star = ["-"] * count, ["*"] * count
  split = [sense.rpartition(".") for sense in senses or [""] * count]
  return [
    *([str(i) for i in range(count)], words, blank, star),
    [lemma or "-" for lemma, _, _ in split],
    [frameset or "-" for _, _, frameset in split],
    *(blank, blank, star),
    *(span_column(spans, count) for spans in roles),
    chains or blank,
  ]
