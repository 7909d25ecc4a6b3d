"""Splits files of token columns: a word on each line, its columns beside it.

CoNLL-2003, -2005, -2009 and -2012, CoNLL-U and layers of entities are split
here into blocks, such as sentences. What files have:

  between columns                  tabs, if half of the lines have one (words
                                   may then contain spaces), or spaces
  CoNLL-U                          10 columns between tabs
  a blank line, -DOCSTART-,        end a block
  #begin document, #end document
  # text, #<tab>text               before a block: a comment, if it has another
                                   number of columns than the block's words, or
                                   the form "# key = value", with which it ends
                                   a block (HIPE); counted in a log line
  ranges (1-2), empty nodes (5.1)  left out, and counted, if the first column
                                   numbers the words (CoNLL-U Plus)
  #, #tag with their columns       words
  BOM, CRLF, spaces around         dropped
  columns
  commas (.csv), lines with other  refused
  columns than most, or than
  others of their sentence
"""

import functools
import itertools
import pathlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bad_rows
from maskedlm.data.labelled.lines import read_lines
from maskedlm.runtime import console

# ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC.
CONLLU_COLUMNS = 10
_CONLLU_ID = re.compile(r"[0-9]+([-.][0-9]+)?")
_NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
_MARKS = ("-DOCSTART-", "#begin document", "#end document")
_COMMENT = ("# ", "#\t")
_KEY = re.compile(r"#[ \t]*([\w.:-]+ = |(id|sent_id|newdoc|newpar)\b)")


class Block(NamedTuple):
  """Consecutive lines of words, such as a sentence."""

  rows: tuple[tuple[str, ...], ...]  # The fields of each word.
  numbers: tuple[int, ...]  # The line numbers, from 1.
  # (line number, text) of the comments and the ends of documents before it.
  before: tuple[tuple[int, str], ...] = ()

  def take(self, places: Sequence[int]) -> "Block":
    """Returns the block with only the words at these places, from 0."""
    return Block(
      tuple(self.rows[i] for i in places),
      tuple(self.numbers[i] for i in places),
      self.before,
    )


class Columns(NamedTuple):
  """A file of token columns."""

  path: str
  blocks: list[Block]
  after: tuple[tuple[int, str], ...]  # As Block.before, after the last block.
  # The number that most lines have; it hides tuple.count.
  count: int  # type: ignore[assignment]
  between: str  # "tabs" or "spaces".
  is_conllu: bool


def read_columns(source: str | pathlib.Path, *, between: str = "") -> Columns:
  """Returns the blocks of a file.

  A file is CoNLL-U if it is named .conllu, or if its first word's line has 10
  columns between tabs, the first a number.

  Args:
    between: "spaces" (tabs, too) for the formats in which sentences differ in
      their numbers of columns, or "conllu"; "" if the file decides.

  Raises:
    DataError: the file is missing, can't be read as text or has no word; a line
      has more or fewer columns; columns are between commas.
  """
  path = pathlib.Path(source)
  lines = [(n, x.rstrip(" \t")) for n, x in enumerate(read_lines(path), 1)]
  words = [text for _, text in lines if not _ends_block(text)]
  columns = _detect_columns(path, words, between)
  split = _SPLIT[columns.between]
  before: list[tuple[int, str]] = []
  comments: list[int] = []
  is_plain = not (between or columns.is_conllu)
  check = functools.partial(_check_columns, columns, between)

  def ends(line: tuple[int, str]) -> bool:
    is_key = is_plain and _KEY.match(line[1]) is not None
    return _ends_block(line[1]) or (
      is_key and len(split(line[1])) != columns.count
    )

  for is_end, group in itertools.groupby(lines, ends):
    run = list(group)
    if is_end:
      before += [line for line in run if line[1]]
      comments += [number for number, text in run if _KEY.match(text)]
      continue
    size = _count_comments([text for _, text in run], columns)
    before += run[:size]
    comments += [number for number, _ in run[:size]]
    if not run[size:]:
      continue
    numbers, texts = zip(*run[size:], strict=True)
    block = Block(tuple(map(split, texts)), numbers, tuple(before))
    kept = [*bad_rows.map_rows(check, [block])]
    columns.blocks.extend(kept)
    # Documents begin and end, whether or not a block of theirs is left out.
    before = [] if kept else _marks(before)
  if not columns.blocks:
    raise DataError(
      f"{source}: the file has no words; expected a word and its columns on "
      "each line, and a blank line after each sentence."
    )
  if is_plain:
    columns.blocks[:] = _without_ranges(columns)
  if comments and not columns.is_conllu:
    console.log(
      f"{source}: comments (# ...): {len(comments):,}, the first in line "
      f"{comments[0]}"
    )
  return columns._replace(after=tuple(before))


def _without_ranges(columns: Columns) -> list[Block]:
  """Returns the blocks without ranges and empty nodes, if words have IDs."""
  kept = []
  for block in columns.blocks:
    ids = [row[0] for row in block.rows]
    places = [i for i, x in enumerate(ids) if not _NO_WORD.fullmatch(x)]
    # Every sentence has a word 1; without any, these may be scores, as 0.93.
    if not places or any(ids[i] != str(n) for n, i in enumerate(places, 1)):
      return columns.blocks
    kept.append(block.take(places))
  num_rows, num_kept = (
    sum(len(x.rows) for x in y) for y in (columns.blocks, kept)
  )
  num_ranges = num_rows - num_kept
  if not num_ranges or columns.count < 3:
    return columns.blocks
  console.log(
    f"{columns.path}: {counted(num_ranges, 'range')} of words and empty nodes "
    "(1-2, 5.1), left out"
  )
  return kept


def _check_columns(columns: Columns, between: str, block: Block) -> Block:
  """Returns the block; raises DataError if a line has more or fewer columns."""
  count = len(block.rows[0]) if between == "spaces" else columns.count
  for row, number in zip(block.rows, block.numbers, strict=True):
    if len(row) == count:
      continue
    text = " ".join(row)
    reference = "CoNLL-U has" if columns.is_conllu else "other lines have"
    hint = "a blank line between sentences"
    if text.startswith("#"):
      hint = "a comment before a sentence, as '# text'"
    raise DataError(
      f"{columns.path}:{number}: {counted(len(row), 'column')} between "
      f"{columns.between}, {text[:60]!r}; expected {count}, as {reference}, or "
      f"{hint}."
    )
  return block


def format_columns(sentences, separator: str = "\t") -> str:
  """Returns sentences, each a sequence of columns of text, and blank lines.

  Characters that would end a field or a line become spaces, or _ between
  spaces; so does an empty field.
  """
  lines: list[str] = []
  for columns in sentences:
    for row in zip(*columns, strict=True):
      lines.append(separator.join(_field(x, separator) for x in row))
    lines.append("")
  return "".join(f"{line}\n" for line in lines)


def _field(text: str, separator: str) -> str:
  if separator == "\t":
    return re.sub(r"[\t\n\r]", " ", text) or "_"
  return "_".join(text.split()) or "_"


def _marks(lines: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
  return [line for line in lines if line[1].startswith(_MARKS)]


def _ends_block(text: str) -> bool:
  """Returns whether a line ends a block."""
  return not text or text.startswith(_MARKS)


def _detect_columns(
  path: pathlib.Path, words: Sequence[str], between: str
) -> Columns:
  """Returns how lines of words and comments are split; has no blocks yet."""
  first = next((x for x in words if not x.startswith("#")), "").split("\t")
  is_conllu = path.suffix.lower() == ".conllu" or (
    len(first) == CONLLU_COLUMNS and _CONLLU_ID.fullmatch(first[0])
  )
  if between == "conllu" or (not between and is_conllu):
    return Columns(str(path), [], (), CONLLU_COLUMNS, "tabs", True)
  # Comments may have any form, so the others decide.
  plain = [x for x in words if not x.startswith(_COMMENT)] or words
  tabs = not between and 2 * sum("\t" in x for x in plain) >= len(plain)
  if path.suffix.lower() == ".csv" and not tabs:
    raise DataError(
      f"{path}: columns between commas; expected a word per line, its columns "
      "between tabs or spaces."
    )
  between = "tabs" if tabs else "spaces"
  counts = Counter(len(_SPLIT[between](x)) for x in plain)
  count = max(counts, key=lambda x: counts[x], default=0)
  return Columns(str(path), [], (), count, between, False)


def _count_comments(run: Sequence[str], columns: Columns) -> int:
  """Returns how many of the first lines of a run are comments."""
  if columns.is_conllu:  # Words begin with their number.
    return next((i for i, x in enumerate(run) if x[0] != "#"), len(run))
  split = _SPLIT[columns.between]
  first = next((x for x in run if not x.startswith(_COMMENT)), None)
  count = columns.count if first is None else len(split(first))

  def is_comment(text: str) -> bool:
    return text.startswith(_COMMENT) and (
      len(split(text)) != count
      or _KEY.match(text) is not None
      or ("\t" in text and columns.between != "tabs")
      or (" " in split(text)[-1])  # A tag has no spaces.
    )

  return next((i for i, x in enumerate(run) if not is_comment(x)), len(run))


def _between_tabs(text: str) -> tuple[str, ...]:
  # A word may be a space.
  fields = text.split("\t")
  if " " in text:
    fields = [field.strip(" ") or field for field in fields]
  return tuple(fields)


def _between_spaces(text: str) -> tuple[str, ...]:
  return tuple(re.split("[ \t]+", text.lstrip(" \t")))


_SPLIT = {"tabs": _between_tabs, "spaces": _between_spaces}
