"""Reads the records of FASTA files: the names and sequences of DNA, proteins.

  >NAME DESCRIPTION     a header; the name is its first word
  ACGTTGCA...           the sequence, on any number of lines

Words NAME=VALUE of a description, such as label=promoter, are fields.

What is no such record is refused in one line: a header without a sequence, two
records of one name, a sequence before any header, a character that is no
letter, and an amino acid where bases are expected.
"""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from maskedlm.core.errors import CorpusError
from maskedlm.data.repair import repair
from maskedlm.data.sources import files

SUFFIXES = (".fa", ".fasta", ".fna", ".faa", ".ffn")
ENDINGS = tuple(
  f"{suffix}{packed}" for suffix in SUFFIXES for packed in ("", ".gz", ".zst")
)
# Letters of a record that are read at a time; a chromosome is several parts.
MAX_PART = 1 << 18
_ODD = re.compile(r"[^A-Za-z*.-]")  # A stop, and gaps of an alignment.
# No code of a base, or of several (R, Y, N, ...); X is a masked one.
_AMINO = re.compile("[EFIJLOPQZefijlopqz*]")
_AMBIGUOUS = re.compile("[^ACGTU]")


class Letters(NamedTuple):
  """How the letters of sequences are read."""

  read: str = "upper"  # corpus.letters.
  bases: bool = False  # Whether amino acids are refused.
  least: int = 1  # Letters that a record must have.


USUAL = Letters()


class Record(NamedTuple):
  """A record, or a part of a long one."""

  name: str
  line: int  # Of its header, from 1.
  sequence: str
  part: int  # From 0.
  named: dict[str, str]  # Words NAME=VALUE of its header.


def read_sequences(
  paths: Iterable[str], letters: Letters, report: Counter
) -> Iterator[list[str]]:
  """Yields the sequences of files, each a document of one line."""
  names: dict[str, str] = {}
  for path in paths:
    for record in read_records(
      _numbered(files.read_text(path, report), report),
      path,
      letters,
      report,
      names=names,
      refuse=CorpusError,
    ):
      if record.part:
        report[f"cuts in records over {MAX_PART:,} letters"] += 1
      yield [record.sequence]


def _numbered(
  chunks: Iterable[str], report: Counter
) -> Iterator[tuple[int, str]]:
  """Yields (number, line); a long line of a sequence in several pieces."""
  number, tail = 1, ""
  for chunk in itertools.chain(chunks, ("\n",)):
    *lines, tail = (tail + chunk).split("\n")
    for line in lines:
      yield number, repair(line, report)
      number += 1
    if tail and not tail.startswith(">"):
      yield number, repair(tail, report)
      tail = ""


def read_records(
  lines: Iterable[tuple[int, str]],
  path: str,
  letters: Letters,
  report: Counter,
  *,
  names: dict[str, str],
  refuse: Callable[[str], Exception],
  most: int = 0,
) -> Iterator[Record]:
  """Yields the records of a file, long ones in parts.

  Args:
    lines: (number from 1, line) of the file.
    path: the file, for messages.
    letters: how to read the letters.
    report: counts the letters that are changed or dropped.
    names: the records read before, and those of this file: name -> FILE:LINE.
    refuse: message -> the error to raise.
    most: letters of a part; 0 for MAX_PART.
  """
  most = most or MAX_PART
  name, at, part, parts, size, named = None, 0, 0, [], 0, {}

  def made(sequence: str) -> Record:
    where = f"{path}:{at}: the record {name!r}"
    sequence = _read(sequence, where, letters, report, refuse)
    if not part and 0 < len(sequence) < letters.least:
      raise refuse(
        f"{where} has {len(sequence)} letters ({sequence}), fewer than "
        f"tokenizer.k={letters.least}: leave it out, or lower tokenizer.k."
      )
    return Record(name, at, sequence, part, named)

  def ended() -> None:
    if name is not None and not part and not size:
      raise refuse(
        f"{path}:{at}: the header {name!r} has no sequence; expected one on "
        "the lines after it: leave it out."
      )

  for number, line in lines:
    if line.startswith(">"):
      ended()
      if parts:
        yield made("".join(parts))
      words = line[1:].split()
      if not words:
        raise refuse(f"{path}:{number}: a header without a name; give it one.")
      name, at, part, parts, size = words[0], number, 0, [], 0
      pairs = (word.partition("=") for word in words[1:])
      named = {key: value for key, equals, value in pairs if equals and key}
      if name in names:
        raise refuse(
          f"{path}:{number}: a second record {name!r}, after that of "
          f"{names[name]}: rename it, or leave it out."
        )
      names[name] = f"{path}:{number}"
    elif body := "".join(line.split()):
      if name is None:
        raise refuse(
          f"{path}:{number}: {body[:40]!r} before any header; expected FASTA, "
          "'>NAME' and its sequence on the lines after it."
        )
      if odd := _ODD.search(body):
        raise refuse(
          f"{path}:{number}: {odd[0]!r} in the sequence of {name!r}; expected "
          "letters: correct it."
        )
      parts.append(body)
      size += len(body)
      while size > most:
        whole = "".join(parts)
        yield made(whole[:most])
        part, parts, size = part + 1, [whole[most:]], size - most
  ended()
  if parts:
    yield made("".join(parts))


def _read(
  sequence: str,
  where: str,
  letters: Letters,
  report: Counter,
  refuse: Callable[[str], Exception],
) -> str:
  """Returns a sequence as corpus.letters has it."""
  if letters.bases and (odd := _AMINO.search(sequence)):
    raise refuse(
      f"{where} has {odd[0]!r} at letter {odd.start() + 1}, an amino acid; "
      "expected bases (A, C, G, T, U, N, ...): leave it out, or set "
      "tokenizer.kind=characters and corpus.letters=upper for proteins."
    )
  if letters.read == "keep":
    return sequence
  capitals = sequence.upper()
  if capitals != sequence:
    report["small letters read as capitals"] += sum(map(str.islower, sequence))
  if letters.read == "drop":
    kept = _AMBIGUOUS.sub("", capitals)
    report["ambiguous bases dropped"] += len(capitals) - len(kept)
    return kept
  return capitals
