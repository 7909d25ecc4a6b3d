"""Files of trees: bracketed text, CoNLL-2012 columns, or JSON and Parquet.

  brackets          a tree on each line, several on one, or one over many lines
  CoNLL-2012        a word per line, its columns between spaces; the word, its
                    tag and its bit of the tree ("(NP*", "*))") are the 4th, 5th
                    and 6th; a blank line or #begin and #end document between
                    sentences
  JSON, Parquet     {"tree": "(S ...)"}, as `predict --json` writes it, or
                    OntoNotes of the Hub (common/ontonotes.py)

The format is recognised by the content.
"""

import itertools
import pathlib
import re
from collections.abc import Iterator

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import objects, tables
from maskedlm.data.labelled.lines import read_lines
from maskedlm.finetune.common import ontonotes
from maskedlm.finetune.constituency import trees
from maskedlm.finetune.tagging import token_lists
from maskedlm.runtime import console

_WORD, _TAG, _BIT = 3, 4, 5  # The columns of CoNLL-2012.
_LONGEST_CHAIN = 100  # Brackets around the same words; treebanks have 4 or 5.


def read_trees(
  path: str | pathlib.Path, *, strip_functions: bool = True
) -> list[trees.Tree]:
  """Returns the trees of a file, without traces.

  Trees that are nothing but traces are left out, and counted.

  Args:
    path: the file.
    strip_functions: NP-SBJ is read as NP.

  Raises:
    DataError: the file is missing, can't be read as text or has no tree; a tree
      is ill-formed (trees.parse_trees); over 100 brackets are around the same
      words.
  """
  found = list(_parse_file(path))
  empty = [tree for tree in found if not tree.words]
  traces = sum(tree.traces for tree in found)
  if traces:
    console.log(f"{path}: {counted(traces, 'trace')} (-NONE-), left out")
  if empty:
    console.log(
      f"{path}: {counted(len(empty), 'tree')} without words, left out, the "
      f"first in line {empty[0].line}"
    )
  if len(empty) == len(found):
    raise DataError(
      f"{path}: the file has no tree with words; expected trees such as "
      "(S (NP (PRP He)) (VP (VBD left)))."
    )
  return [_plain(tree, path, strip_functions) for tree in found if tree.words]


def _parse_file(path: str | pathlib.Path) -> Iterator[trees.Tree]:
  if token_lists.is_format(path):
    rows = objects.read_objects(path)
    for number, fields in ontonotes.each_sentence(rows):
      record = tables.Record(number, fields, str(path))
      yield _only_tree([(number, _tree_text(record))], path)
    return
  path = pathlib.Path(path)
  lines = ((n, text) for n, text in enumerate(read_lines(path), 1))
  filled = ((n, text) for n, text in lines if text.strip())
  first = next(filled, None)
  if first is None:
    return
  if first[1].lstrip().startswith("(") or not _is_columns(first[1]):
    yield from trees.parse_trees(itertools.chain([first], filled), str(path))
    return
  numbered = enumerate(read_lines(path), 1)
  for is_gap, group in itertools.groupby(
    numbered, lambda line: not line[1].strip() or line[1].startswith("#")
  ):
    if not is_gap:
      yield _only_tree([_piece(path, *line) for line in group], path)


def _tree_text(record: tables.Record) -> str:
  """Returns a bracketed tree; OntoNotes' has * for each of the words."""
  if "tree" in record.fields or "parse_tree" not in record.fields:
    return tables.get_text(record, "tree")
  text, fields = tables.get_text(record, "parse_tree"), record.fields
  if " " in text or "*" not in text:  # It has its words.
    return text
  pairs = [fields.get(name) for name in ("pos_tags", "words")]
  if not all(isinstance(x, list) and len(x) == text.count("*") for x in pairs):
    raise DataError(
      f"{record.where}: the parse_tree has {text.count('*')} words; expected "
      "as many 'words' and 'pos_tags'."
    )
  words = zip(*pairs, strict=True)
  leaves = (f"({trees.escape(tag)} {trees.escape(w)})" for tag, w in words)
  return re.sub(r"\*", lambda _: f" {next(leaves)}", text)


def _is_columns(line: str) -> bool:
  return line.startswith("#") or len(line.split()) > _BIT


def _piece(path: pathlib.Path, number: int, line: str) -> tuple[int, str]:
  """Returns the line number, and "(NP (DT the)" of a line with (NP*."""
  fields = line.split()
  bit = fields[_BIT] if len(fields) > _BIT else ""
  if bit.count("*") != 1:
    found = f"{bit[:40]!r}" if bit else f"{counted(len(fields), 'column')}"
    raise DataError(
      f"{path}:{number}: {found}; expected bracketed trees, or CoNLL-2012 with "
      f"a part of a tree, such as (NP* or *)), in column {_BIT + 1}."
    )
  leaf = f"({trees.escape(fields[_TAG])} {trees.escape(fields[_WORD])})"
  return number, bit.replace("*", leaf)


def _only_tree(
  pieces: list[tuple[int, str]], path: str | pathlib.Path
) -> trees.Tree:
  found = list(trees.parse_trees(pieces, str(path)))
  if len(found) != 1:
    raise DataError(
      f"{path}:{pieces[0][0]}: {counted(len(found), 'tree')} for a sentence; "
      "expected one, with a bracket around all of its words."
    )
  return found[0]


def _plain(
  tree: trees.Tree, path: str | pathlib.Path, strip_functions: bool
) -> trees.Tree:
  """Returns a tree with plain labels; raises DataError for a long chain."""
  brackets = tuple(
    bracket._replace(
      label=trees.plain_label(bracket.label, strip_functions=strip_functions)
    )
    for bracket in tree.brackets
  )
  for chain in trees.join_chains(brackets).values():
    count = chain.count(" ") + 1
    if count > _LONGEST_CHAIN:
      raise DataError(
        f"{path}:{tree.line}: {count:,} brackets around the same words; "
        f"expected at most {_LONGEST_CHAIN}."
      )
  return tree._replace(brackets=brackets)
