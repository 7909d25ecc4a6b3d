"""Files of trees: bracketed text, CoNLL-2012 columns, or JSON and Parquet.

  brackets          a tree on each line, several on one, or one over many lines
  CoNLL-2012        the word, its tag and its bit of the tree, "(NP*" or "*))"
                    (conll2012.py)
  JSON, Parquet     {"tree": "(S ...)"}, as `predict --json` writes it, or
                    OntoNotes of the Hub (read.py)

The format is recognised by the content.
"""

import functools
import itertools
import os
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bad_rows, columns, fields, read
from maskedlm.data.labelled.formats import conll2012, trees
from maskedlm.data.labelled.lines import read_lines
from maskedlm.runtime import console

_TREE = fields.Format(
  {
    "tree": fields.text("tree", "parse_tree"),
    "words": fields.texts("words", "tokens", optional=True),
    "tags": fields.items(
      "pos_tags", of=fields.key_of, expected="a list of tags", optional=True
    ),
  },
  such_as='{"tree": "(S (NP (PRP He)) (VP (VBD left)))"}',
  documents=True,
)


def read_file(
  source: str, *, strip_functions: bool = True
) -> list[trees.Example]:
  """Returns the trees of a file, without traces.

  Trees that are nothing but traces are left out, and counted. With
  strip_functions, NP-SBJ is read as NP.

  Raises:
    DataError: the file is missing, can't be read as text or has no tree; a tree
      is ill-formed (trees.parse_trees).
  """
  parsed = list(_parse_file(source))
  empty = [tree for tree, _ in parsed if not tree.words]
  traces = sum(count for _, count in parsed)
  if traces:
    console.log(f"{source}: {counted(traces, 'trace')} (-NONE-), left out")
  if empty:
    console.log(
      f"{source}: {counted(len(empty), 'tree')} without words, left out, the "
      f"first in line {empty[0].where.rpartition(':')[2]}"
    )
  if len(empty) == len(parsed):
    raise DataError(
      f"{source}: the file has no tree with words; expected trees such as "
      "(S (NP (PRP He)) (VP (VBD left)))."
    )
  document = os.path.basename(source)
  plain = functools.partial(trees.plain_label, strip_functions=strip_functions)

  def with_plain_labels(tree: trees.Example) -> trees.Example:
    brackets = [x._replace(label=plain(x.label)) for x in tree.brackets or ()]
    return tree._replace(brackets=tuple(brackets), document=document)

  return [with_plain_labels(tree) for tree, _ in parsed if tree.words]


def _parse_file(source: str) -> Iterator[tuple[trees.Example, int]]:
  if read.has_objects(source):

    def read_row(row: read.Row) -> tuple[trees.Example, int]:
      text = _with_words(row.values, row.where)
      return _only_tree([(row.line, text)], source)

    yield from bad_rows.map_rows(read_row, read.read_objects(source, _TREE))
    return
  lines = enumerate(read_lines(pathlib.Path(source)), 1)
  filled = ((number, text) for number, text in lines if text.strip())
  first = next(filled, (0, "("))
  # Columns begin with #begin document, or have as many as CoNLL-2012.
  has_many = len(first[1].split()) > conll2012.BIT
  if first[1].lstrip()[:1] == "(" or not (first[1][:1] == "#" or has_many):
    rest = [*([first] if first[0] else []), *filled]
    groups = bad_rows.map_rows(
      lambda x: [*trees.parse_trees(x, source)], _balanced_lines(rest)
    )
    yield from itertools.chain.from_iterable(groups)
    return
  file = columns.read_columns(source, between="spaces")
  yield from bad_rows.map_rows(
    lambda sentence: _only_tree(_pieces(sentence), source),
    conll2012.read_sentences(file),
  )


def _balanced_lines(
  lines: Sequence[tuple[int, str]],
) -> Iterator[Sequence[tuple[int, str]]]:
  """Yields groups of lines with balanced brackets, which hold whole trees.

  If a bracket is never closed, yields all lines from it on, then goes on with
  the next line that begins as its tree did: (S, (TOP, or a bracket alone.
  """
  begin = 0
  while begin < len(lines):
    depth, end = 0, begin
    while end == begin or (depth > 0 and end < len(lines)):
      depth += lines[end][1].count("(") - lines[end][1].count(")")
      end += 1
    yield lines[begin:end]
    candidates = range(begin + 1, end) if depth > 0 else ()
    root = lines[begin][1].split()[0]
    begin = next((i for i in candidates if lines[i][1].split()[0] == root), end)


def _pieces(sentence: conll2012.Sentence) -> list[tuple[int, str]]:
  """Returns (line number, "(NP (DT the)" of a line with (NP*) of each word."""
  columns_read = (conll2012.WORD, conll2012.TAG, conll2012.BIT)
  rows = zip(*map(sentence.column, columns_read), strict=True)
  pieces = []
  for number, (word, tag, bit) in zip(
    sentence.block.numbers, rows, strict=True
  ):
    if bit.count("*") != 1:
      raise DataError(
        f"{sentence.path}:{number}: {bit[:40]!r}; expected bracketed "
        "trees, or CoNLL-2012 with a part of a tree, such as (NP* or *)), in "
        f"column {conll2012.BIT + 1}."
      )
    pieces.append((number, bit.replace("*", _leaf(tag, word))))
  return pieces


def _leaf(tag: str, word: str) -> str:
  return f"({trees.escape(tag)} {trees.escape(word)})"


def _with_words(values: Mapping[str, Any], where: str) -> str:
  """Returns a bracketed tree; OntoNotes' has * for each of the words."""
  text = values["tree"]
  if " " in text or "*" not in text:  # It has its words.
    return text
  pairs = [values["tags"] or (), values["words"] or ()]
  if any(len(x) != text.count("*") for x in pairs):
    raise DataError(
      f"{where}: the parse_tree has {text.count('*')} words; expected as many "
      "'words' and 'pos_tags'."
    )
  leaves = (_leaf(*pair) for pair in zip(*pairs, strict=True))
  return re.sub(r"\*", lambda _: f" {next(leaves)}", text)


def _only_tree(
  pieces: Sequence[tuple[int, str]], source: str
) -> tuple[trees.Example, int]:
  parsed = list(trees.parse_trees(pieces, source))
  if len(parsed) != 1:
    count = counted(len(parsed), "tree")
    raise DataError(
      f"{source}:{pieces[0][0]}: {count} for a sentence; expected one, with a "
      "bracket around all of its words."
    )
  return parsed[0]
