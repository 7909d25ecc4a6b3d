"""Dependency trees: CoNLL-U (universaldependencies.org/format.html) and JSON.

  ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC    a word, between tabs
  3-4   don't  _ ...       a token of several words: kept, it is in no tree
  8.1   left   _ ...       an empty node: left out with DEPS, which alone refer
                           to it, and counted
  # text = ...             comments, before a sentence: kept
  (blank)                  ends a sentence

  {"tokens": ["He", "left"], "head": ["2", "0"], "deprel": ["nsubj", "root"]}

The JSON is that of Hugging Face's and TFDS's universal_dependencies, and of
`predict --json`. A head that is none ("None" there) is that of a token of
several words, such as don't beside do and n't: it is left out, and counted. A
file without heads, which has _ as every HEAD, is read, too.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bad_rows, columns, fields, read
from maskedlm.data.labelled.columns import Block
from maskedlm.runtime import console

_ID, FORM, _HEAD, _DEPREL, _DEPS = 0, 1, 6, 7, 8
_RANGE = re.compile(r"([0-9]+)-([0-9]+)")
_EMPTY = re.compile(r"([0-9]+)\.[0-9]+")
_SPACES = re.compile(r"[\s\x00-\x1f]+")
_NONE = (None, "None", "_")


class Example(NamedTuple):
  """A sentence and its tree."""

  words: tuple[str, ...]
  heads: tuple[int, ...] | None = None  # From 1; 0 is the root.
  labels: tuple[str, ...] | None = None  # Of the arcs: nsubj, nmod:poss.
  fields: tuple[tuple[str, ...], ...] = ()  # Of words and ranges, 10 each.
  comments: tuple[str, ...] = ()
  lines: tuple[int, ...] = ()  # Line numbers of the words.
  where: str = ""  # FILE:LINE of the first word.


_TREE = fields.Format(
  {
    "words": fields.texts("tokens", "words"),
    "heads": fields.items(
      "head",
      "heads",
      of=lambda x: "_" if x in _NONE else fields.key_of(x),
      expected="a list of words, from 1, and 0 for the root",
      optional=True,
      same_length="words",
    ),
    "labels": fields.texts(
      "deprel", "labels", optional=True, same_length="words"
    ),
  },
  such_as='{"tokens": ["He", "left"], "head": [2, 0], "deprel": ["nsubj", '
  '"root"]}',
  filled="words",
)


def read_file(source: str) -> list[Example]:
  """Returns the sentences of CoNLL-U, JSON, Parquet or "tfds:...".

  Raises:
    DataError: the file is missing, can't be read as text or has no sentence; a
      line has other than 10 columns, or an ID that is out of order; a row has
      other heads and labels than words; words have heads that are no tree with
      one root.
  """
  if read.has_objects(source):
    return _read_rows(source)
  file = columns.read_columns(source, between="conllu")
  empty: list[tuple[tuple[str, ...], int]] = []

  def read_block(block: Block) -> Example:
    words = syntactic_words(file.path, block)
    lines = list(zip(block.rows, block.numbers, strict=True))
    empty.extend(line for line in lines if _EMPTY.fullmatch(line[0][_ID]))
    heads, labels = read_tree(
      [
        (f"{source}:{number}", row[_HEAD], row[_DEPREL])
        for row, number in zip(words.rows, words.numbers, strict=True)
      ]
    )
    return Example(
      words=tuple(row[FORM] for row in words.rows),
      heads=heads,
      labels=labels,
      fields=tuple(x for x in block.rows if not _EMPTY.fullmatch(x[_ID])),
      comments=tuple(text for _, text in block.before),
      lines=words.numbers,
      where=f"{source}:{words.numbers[0]}",
    )

  examples = [*bad_rows.map_rows(read_block, file.blocks)]
  if empty:
    row, number = empty[0]
    console.log(
      f"{source}: {counted(len(empty), 'empty node')} (such as {row[_ID]} in "
      f"line {number}), left out: no tree has them"
    )
  if file.after:
    console.log(f"{source}: comments after the last sentence, left out")
  return examples


def syntactic_words(path: str, block: Block) -> Block:
  """Returns a sentence without its ranges and empty nodes.

  Raises:
    DataError: an ID is out of order, or a word is empty; there is none.
  """
  places: list[int] = []  # Of the words.
  end = 0  # The end of the last range.
  for place, row in enumerate(block.rows):
    identity, expected = row[_ID], len(places) + 1
    where = f"{path}:{block.numbers[place]}"
    if not row[FORM]:
      raise DataError(f"{where}: the word is empty; expected a FORM.")
    if identity == str(expected):
      places.append(place)
    elif parts := _RANGE.fullmatch(identity):
      begin, stop = map(int, parts.groups())
      if begin != expected or not max(begin, end) < stop:
        raise DataError(
          f"{where}: ID {identity!r}; expected a range of words that begins "
          f"with the next one, {expected}, after the last range."
        )
      end = stop
    elif not _EMPTY.fullmatch(identity):
      raise DataError(
        f"{where}: ID {identity[:40]!r}; expected {expected}, or a blank line "
        "before a new sentence."
      )
  if not places:
    raise DataError(f"{path}:{block.numbers[0]}: a sentence without words.")
  if end > len(places):
    raise DataError(
      f"{path}:{block.numbers[-1]}: a range of words ends with {end}, but the "
      f"sentence with {len(places)}."
    )
  return block.take(places)


def of_words(words: Sequence[str]) -> Example:
  """Returns the Example of words that come from no file."""
  plain = [_SPACES.sub(" ", word).strip() for word in words]
  return Example(
    tuple(words),
    fields=tuple(
      (str(i), word or "_", *["_"] * 8) for i, word in enumerate(plain, 1)
    ),
    comments=(f"# text = {_SPACES.sub(' ', ' '.join(words)).strip()}",),
  )


def format_sentence(
  example: Example, heads: Sequence[int], labels: Sequence[str]
) -> str:
  """Returns a sentence with this tree, without the blank line after it.

  All else is as it was read, but for DEPS, which is _: it would be of another
  tree. Heads count from 1; the root's is 0.
  """
  lines, tree = [*example.comments], zip(heads, labels, strict=True)
  for word_fields in example.fields:
    row = list(word_fields)
    row[_DEPS] = "_"
    if not _RANGE.fullmatch(row[_ID]):
      head, row[_DEPREL] = next(tree)
      row[_HEAD] = str(head)
    lines.append("\t".join(row))
  return "".join(f"{line}\n" for line in lines)


def _read_rows(source: str) -> list[Example]:
  ranges = 0

  def read_row(row: read.Row) -> Example:
    nonlocal ranges
    words, heads, labels = row.values.values()
    blank = ("_",) * len(words)
    arcs = [*zip(words, heads or blank, labels or blank, strict=True)]
    kept = [x for x in arcs if x[1] != "_"] or arcs
    ranges += len(arcs) - len(kept)
    heads, labels = read_tree([(row.where, x[1], x[2]) for x in kept])
    example = of_words([word for word, _, _ in kept])
    example = example._replace(lines=(row.line,) * len(kept), where=row.where)
    return example._replace(heads=heads, labels=labels)

  examples = [*bad_rows.map_rows(read_row, read.read_objects(source, _TREE))]
  if ranges:
    console.log(
      f"{source}: {counted(ranges, 'word')} without a head beside others, left "
      "out, as tokens of several words"
    )
  return examples


def read_tree(
  arcs: Sequence[tuple[str, str, str]],
) -> tuple[tuple[int, ...] | None, tuple[str, ...] | None]:
  """Returns the heads and labels of words, or None twice if all heads are _.

  Args:
    arcs: (FILE:LINE, HEAD, DEPREL) of each word.

  Raises:
    DataError: the heads are no tree with one root; a label is empty or _.
  """
  if all(head == "_" for _, head, _ in arcs):
    return None, None
  heads: list[int] = []
  labels = []
  for where, head, label in arcs:
    if not re.fullmatch("[0-9]+", head) or int(head) > len(arcs):
      raise DataError(
        f"{where}: HEAD {head[:40]!r}; expected a word from 1 to {len(arcs)}, "
        "or 0 for the root."
      )
    if label.strip() in ("", "_"):
      raise DataError(
        f"{where}: DEPREL {label!r}; expected a label, such as nsubj."
      )
    if int(head) == 0 and 0 in heads:
      raise DataError(
        f"{where}: a second root (HEAD 0), word {len(heads) + 1}, beside word "
        f"{heads.index(0) + 1}; expected one in each sentence."
      )
    heads.append(int(head))
    labels.append(label.strip())
  done = {0}  # The words that lead to the root.
  for word in range(1, len(heads) + 1):
    trail: dict[int, None] = {}
    while word not in done and word not in trail:
      trail[word] = None
      word = heads[word - 1]
    if word in trail:
      words = [*trail]
      cycle = " -> ".join(map(str, [*words[words.index(word) :], word]))
      raise DataError(
        f"{arcs[word - 1][0]}: a cycle of heads, {cycle[:60]}; expected a "
        "tree, in which all words lead to the root."
      )
    done.update(trail)
  return tuple(heads), tuple(labels)
