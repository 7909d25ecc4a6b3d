"""Reads the records of FASTA files: the names and sequences of DNA, proteins.

  >NAME DESCRIPTION     a header; the name is its first word
  ACGTTGCA...           the sequence, on any number of lines

Words KEY=VALUE of a description, such as label=promoter, are fields.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from maskedlm.core.errors import CorpusError
from maskedlm.data.repair import repair
from maskedlm.data.sources import files

SUFFIXES = (".fa", ".fasta", ".fna", ".faa", ".ffn")
ENDINGS = tuple(
  f"{suffix}{packed}" for suffix in SUFFIXES for packed in ("", ".gz", ".zst")
)
MAX_PART = 1 << 14  # Letters; a longer record is several documents.
_ODD = re.compile(r"[^A-Za-z*.-]")  # A stop, and gaps of an alignment.
# No code of a base, or of several (R, Y, N, ...); X is a masked one.
_AMINO = re.compile("[EFIJLOPQZefijlopqz*]")


class Letters(NamedTuple):
  """How the letters of sequences are read."""

  read: str = "upper"  # corpus.letters.
  bases: bool = False  # Whether amino acids are refused.
  least: int = 1  # Letters that a record must have.


USUAL = Letters()


class Record(NamedTuple):
  """A record, or a part of a long one."""

  name: str
  where: str  # FILE:LINE of its header.
  fields: dict[str, str]
  part: int  # From 0.
  sequence: str


def read_sequences(
  paths: Iterable[str], letters: Letters, report: Counter
) -> Iterator[list[str]]:
  """Yields the sequences of files, each a document of one line."""
  names: dict[str, str] = {}
  for path in paths:
    lines = _numbered(files.read_text(path, report), report)
    for record in read_records(
      lines, path, letters, report, names=names, error=CorpusError
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
  error: type[Exception],
  most: int = 0,
) -> Iterator[Record]:
  """Yields the records of a file, long ones in parts.

  Args:
    lines: (number from 1, line) of the file.
    path, letters: its name, and how to read its letters.
    report: counts the letters that are changed or dropped.
    names: name -> Record.where, of the files read before; grows.
    error: raised where the file is not as it should be.
    most: letters of a part; 0 for MAX_PART.
  """
  parts: list[str] = []
  record, size, most = None, 0, most or MAX_PART
  for number, line in itertools.chain(lines, ((0, ">"),)):
    where, body = f"{path}:{number}", "".join(line.split())
    if line.startswith(">"):
      if record and not parts:
        raise error(
          f"{record.where}: the header {record.name!r} has no sequence; "
          "expected one on the lines after it: leave it out."
        )
      if record:
        yield _convert(record, "".join(parts), letters, report, error)
      if not number:
        return
      name, *words = line[1:].split() or [""]
      if not name or name in names:
        problem = "a header without a name: name"
        if name:
          problem = f"a second record {name!r}, after {names[name]}: rename"
        raise error(f"{where}: {problem} it, or leave it out.")
      names[name] = where
      pairs = (word.partition("=") for word in words)
      fields = {key: value for key, equals, value in pairs if key and equals}
      record, parts, size = Record(name, where, fields, 0, ""), [], 0
    elif body:
      if record is None:
        raise error(
          f"{where}: {body[:40]!r} before any header; expected FASTA, '>NAME' "
          "and its sequence on the lines after it."
        )
      if odd := _ODD.search(body):
        raise error(
          f"{where}: {odd[0]!r} in the sequence of {record.name!r}; expected "
          "letters: correct it."
        )
      parts.append(body)
      size += len(body)
      while size > most:
        whole = "".join(parts)
        yield _convert(record, whole[:most], letters, report, error)
        record = record._replace(part=record.part + 1)
        parts, size = [whole[most:]], size - most


def _convert(
  record: Record,
  sequence: str,
  letters: Letters,
  report: Counter,
  error: type[Exception],
) -> Record:
  """Returns a record with its letters as corpus.letters has them."""
  where = f"{record.where}: the record {record.name!r}"
  if letters.bases and (odd := _AMINO.search(sequence)):
    raise error(
      f"{where} has {odd[0]!r} at letter {odd.start() + 1}, an amino acid; "
      "expected bases (A, C, G, T, U, N, ...): leave it out, or set "
      "tokenizer.kind=characters and corpus.letters=upper for proteins."
    )
  converted = sequence if letters.read == "keep" else sequence.upper()
  if converted != sequence:
    report["small letters read as capitals"] += sum(map(str.islower, sequence))
  if letters.read == "drop":
    converted = re.sub("[^ACGTU]", "", converted)
    report["ambiguous bases dropped"] += len(sequence) - len(converted)
  if not record.part and 0 < len(converted) < letters.least:
    raise error(
      f"{where} has {len(converted)} letters ({converted}), fewer than "
      f"tokenizer.k={letters.least}: leave it out, or lower tokenizer.k."
    )
  return record._replace(sequence=converted)
