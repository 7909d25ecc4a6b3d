"""CoNLL-2012: documents of words whose last column marks coreference chains.

  #begin document (bc/cnn/00/cnn_0001); part 000
  bc/cnn/00/cnn_0001 0 0 Ann   NNP * - - - - * (7)
  bc/cnn/00/cnn_0001 0 1 lost  VBD * - - - - * -
  bc/cnn/00/cnn_0001 0 2 her   PRP * - - - - * (12|(7)
  bc/cnn/00/cnn_0001 0 3 keys  NNS * - - - - * 12)

  #end document

The word is the fourth column; the others are not read. "(7" begins a mention of
chain 7 and "7)" ends the chain's latest one that is open. A blank line ends a
sentence. https://conll.cemantix.org/2012/data.html
"""

import pathlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.lines import read_lines
from maskedlm.finetune.coreference_chains.rows import Chains, Example
from maskedlm.runtime import console

_BEGIN, _END = "#begin document", "#end document"
_NAME = re.compile(r"\((.*)\); part (\d+)")
_WORD, _LEAST = 3, 5  # The word's column; the fewest columns.
_MARK = re.compile(r"(\()?(\d+)(\))?")


def read_documents(path: str | pathlib.Path) -> list[Example]:
  """Returns the documents of a file.

  A mention that is marked twice in a chain counts once, and a log line counts
  them. One in two chains is in both, as in the official scorer.

  Raises:
    DataError: the file can't be read; a line is outside a document, or has too
      few columns; a document doesn't end; the last column is not of brackets,
      or they are not balanced.
  """
  documents: list[Example] = []
  reader, twice = None, []
  for number, line in enumerate(read_lines(pathlib.Path(path)), 1):
    where, line = f"{path}:{number}", line.strip()
    if line.startswith(_BEGIN):
      if reader is not None:
        raise DataError(
          f"{where}: {_BEGIN}, but the document of {reader.where} has not "
          f"ended; expected a line {_END} before it."
        )
      reader = _Document(line.removeprefix(_BEGIN).strip(), where)
    elif line.startswith(_END):
      if reader is None:
        raise DataError(
          f"{where}: {_END}, but no document is open; expected a line "
          f"{_BEGIN} (NAME); part 000 before its words."
        )
      documents.append(reader.finished())
      twice += reader.twice
      reader = None
    elif line.startswith("#") and reader is None:
      continue  # A comment between documents.
    elif reader is not None:
      reader.add(line, where)
    elif line:
      raise DataError(
        f"{where}: a word outside a document; expected a line {_BEGIN} "
        "(NAME); part 000 before the first one. Is the file CoNLL-2012?"
      )
  if reader is not None:
    raise DataError(
      f"{reader.where}: the document does not end; expected a line {_END} "
      "after its last word. Is the file complete?"
    )
  if not documents:
    raise DataError(f"{path}: no document; expected lines {_BEGIN} ....")
  if twice:
    console.log(
      f"{path}: {counted(len(twice), 'mention')} marked twice in a chain, "
      f"counted once; such as {twice[0]}"
    )
  return documents


class _Document:
  """Collects the lines of a document."""

  def __init__(self, name: str, where: str):
    self.name, self.where = name, where
    self.words: list[str] = []
    self.ends: list[int] = []
    self.open = defaultdict(list)  # Chain -> (first word, where).
    self.chains: dict[int, set[tuple[int, int]]] = {}
    self.twice: list[str] = []  # Where.

  def add(self, line: str, where: str) -> None:
    """Adds a word, or ends a sentence."""
    if not line:
      self._end_sentence()
      return
    fields = line.split()
    if len(fields) < _LEAST:
      raise DataError(
        f"{where}: {counted(len(fields), 'column')}; expected at least "
        f"{_LEAST}: document, part, number, word, ..., coreference."
      )
    place = len(self.words)
    self.words.append(fields[_WORD])
    if fields[-1] not in ("-", "_"):
      for mark in fields[-1].split("|"):
        self._read_mark(mark, fields[-1], place, where)

  def _read_mark(self, mark: str, cell: str, place: int, where: str) -> None:
    found = _MARK.fullmatch(mark)
    if not found or not (found[1] or found[3]):
      raise DataError(
        f"{where}: the last column is {cell!r}; expected -, or marks such as "
        "(7, 7) and (7), separated by |, with the number of a chain."
      )
    chain = int(found[2])
    if found[1] and not found[3]:
      self.open[chain].append((place, where))
      return
    if found[1]:
      begin = place
    elif self.open[chain]:
      begin = self.open[chain].pop()[0]
    else:
      raise DataError(
        f"{where}: {mark!r} ends a mention of chain {chain}, but none is "
        f"open; expected ({chain} at its first word."
      )
    mention = begin, place + 1
    mentions = self.chains.setdefault(chain, set())
    if mention in mentions:
      self.twice.append(where)
    mentions.add(mention)

  def _end_sentence(self) -> None:
    if self.words and self.ends[-1:] != [len(self.words)]:
      self.ends.append(len(self.words))

  def finished(self) -> Example:
    """Returns the document."""
    for chain, begun in self.open.items():
      if begun:
        raise DataError(
          f"{begun[-1][1]}: ({chain} begins a mention that does not end in "
          f"its document; expected {chain}) at its last word."
        )
    self._end_sentence()
    return Example(
      words=tuple(self.words),
      sentence_ends=tuple(self.ends),
      chains=tuple(tuple(sorted(chain)) for chain in self.chains.values()),
      id=self.name,
      where=self.where,
    )


def format_documents(
  documents: Iterable[tuple[str, Sequence[str], Sequence[int], Chains]],
) -> str:
  """Returns documents as CoNLL-2012, with placeholders in unknown columns.

  Args:
    documents: (id, words, ends of the sentences, chains) of each. No two
      mentions of a chain may cross.
  """
  lines = []
  for name, words, ends, chains in documents:
    found = _NAME.fullmatch(name)
    key, part = (found[1], int(found[2])) if found else (name or "input", 0)
    lines.append(f"{_BEGIN} ({key}); part {part:03d}")
    cells, begin = _cells(chains), 0
    for end in ends:
      for place in range(begin, end):
        cell = "|".join(cells.get(place, ["-"]))
        word = re.sub(r"\s", "_", words[place]) or "_"
        number = place - begin
        lines.append(f"{key} {part} {number} {word} - * - - - - * {cell}")
      lines.append("")
      begin = end
    lines.append(_END)
  return "".join(f"{line}\n" for line in lines)


def _cells(chains: Chains) -> dict[int, list[str]]:
  """Returns the marks of each word, outer mentions around inner ones."""
  cells = defaultdict(list)
  mentions = [(b, e, i) for i, chain in enumerate(chains) for b, e in chain]
  for begin, end, chain in sorted(mentions, key=lambda m: (m[0], -m[1])):
    if end - begin > 1:
      cells[begin].append(f"({chain}")
  for begin, end, chain in sorted(mentions):
    if end - begin == 1:
      cells[begin].append(f"({chain})")
  for begin, end, chain in sorted(mentions, key=lambda m: (m[1], -m[0])):
    if end - begin > 1:
      cells[end - 1].append(f"{chain})")
  return cells
