"""Reads and writes trees in CoNLL-U (universaldependencies.org/format.html).

  ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC    a word, between tabs
  3-4   don't  _ ...       a token of several words: kept, it is in no tree
  8.1   left   _ ...       an empty node: left out with DEPS, which alone refer
                           to it, and counted
  # text = ...             comments, before a sentence: kept
  (blank)                  ends a sentence

A file with heads and one without, which has _ as every HEAD, are both read.
"""

import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.lines import read_lines
from maskedlm.runtime import console

_ID, _FORM, _HEAD, _DEPREL, _DEPS = 0, 1, 6, 7, 8
COLUMNS = 10
_RANGE = re.compile(r"([0-9]+)-([0-9]+)")
_EMPTY = re.compile(r"([0-9]+)\.[0-9]+")
_SPACES = re.compile(r"[\s\x00-\x1f]+")


class Example(NamedTuple):
  """A sentence and its tree."""

  words: tuple[str, ...]
  heads: tuple[int, ...] | None = None  # From 1; 0 is the root.
  labels: tuple[str, ...] | None = None  # Of the arcs: nsubj, nmod:poss.
  fields: tuple[tuple[str, ...], ...] = ()  # Of words and ranges, 10 each.
  comments: tuple[str, ...] = ()
  lines: tuple[int, ...] = ()  # Line numbers of the words.
  where: str = ""  # FILE:LINE of the first word.

  @property
  def file(self) -> str:
    """The name of the file."""
    return self.where.rpartition(":")[0]


def read_sentences(path: str | pathlib.Path) -> list[Example]:
  """Returns the sentences of a file.

  Raises:
    DataError: the file is missing, can't be read as text or has no sentence; a
      line has other than 10 columns, or an ID that is out of order; words have
      heads that are no tree with one root.
  """
  path = pathlib.Path(path)
  found, empty = [], []
  for comments, lines in _blocks(path):
    rows = []
    for number, fields in lines:
      (empty if _EMPTY.fullmatch(fields[_ID]) else rows).append(
        (number, fields)
      )
    found.append(_sentence(path, comments, rows))
  if not found:
    raise DataError(
      f"{path}: the file has no sentence; expected CoNLL-U, a word on each "
      "line."
    )
  if empty:
    console.log(
      f"{path}: {counted(len(empty), 'empty node')} (such as "
      f"{empty[0][1][_ID]} in line {empty[0][0]}), left out: no tree has them"
    )
  return found


def of_words(words: Sequence[str]) -> Example:
  """Returns the Example of words that come from no file."""
  return Example(
    tuple(words),
    fields=tuple(
      (str(i), _SPACES.sub(" ", word).strip() or "_", *["_"] * 8)
      for i, word in enumerate(words, 1)
    ),
    comments=(f"# text = {_SPACES.sub(' ', ' '.join(words)).strip()}",),
  )


def format_sentence(
  example: Example, heads: Sequence[int], labels: Sequence[str]
) -> str:
  """Returns a sentence with this tree, without the blank line after it.

  All else is as it was read, but for DEPS, which is _: it would be of another
  tree.

  Args:
    example: the sentence.
    heads: from 1, 0 for the root.
    labels: those of the arcs.
  """
  lines, tree = [*example.comments], zip(heads, labels, strict=True)
  for fields in example.fields:
    made = list(fields)
    made[_DEPS] = "_"
    if not _RANGE.fullmatch(fields[_ID]):
      head, made[_DEPREL] = next(tree)
      made[_HEAD] = str(head)
    lines.append("\t".join(made))
  return "".join(f"{line}\n" for line in lines)


def _blocks(
  path: pathlib.Path,
) -> Iterator[tuple[list[str], list[tuple[int, tuple[str, ...]]]]]:
  """Yields (comments, [(line number, fields)]) of each sentence."""
  comments, lines = [], []
  for number, text in enumerate(read_lines(path), 1):
    if not text.strip():
      if lines:
        yield comments, lines
        comments, lines = [], []
    elif text.startswith("#"):
      if lines:
        raise DataError(
          f"{path}:{number}: a comment within a sentence: {text[:40]!r}; "
          "expected comments before its first word, and a blank line after a "
          "sentence."
        )
      comments.append(text)
    else:
      fields = tuple(text.split("\t"))
      if len(fields) != COLUMNS:
        raise DataError(
          f"{path}:{number}: {counted(len(fields), 'column')} between tabs: "
          f"{text[:40]!r}; expected CoNLL-U, which has 10."
        )
      lines.append((number, fields))
  if lines:
    yield comments, lines
  elif comments:
    console.log(f"{path}: comments after the last sentence, left out")


def _sentence(
  path: pathlib.Path,
  comments: Sequence[str],
  rows: Sequence[tuple[int, tuple[str, ...]]],
) -> Example:
  words = _words(path, rows)
  if not words:
    raise DataError(
      f"{path}:{rows[0][0] if rows else 1}: a sentence without words."
    )
  heads, labels = read_tree(
    [(f"{path}:{n}", fields[_HEAD], fields[_DEPREL]) for n, fields in words]
  )
  return Example(
    words=tuple(fields[_FORM] for _, fields in words),
    heads=heads,
    labels=labels,
    fields=tuple(fields for _, fields in rows),
    comments=tuple(comments),
    lines=tuple(number for number, _ in words),
    where=f"{path}:{words[0][0]}",
  )


def _words(
  path: pathlib.Path, rows: Sequence[tuple[int, tuple[str, ...]]]
) -> list[tuple[int, tuple[str, ...]]]:
  """Returns the rows without ranges, having checked all IDs and words."""
  words, end = [], 0  # The end of the last range.
  for number, fields in rows:
    identity, expected = fields[_ID], len(words) + 1
    if not fields[_FORM].strip():
      raise DataError(f"{path}:{number}: the word is empty; expected a FORM.")
    if parts := _RANGE.fullmatch(identity):
      begin, stop = map(int, parts.groups())
      if begin != expected or not max(begin, end) < stop:
        raise DataError(
          f"{path}:{number}: ID {identity!r}; expected a range of words that "
          f"begins with the next one, {expected}, after the last range."
        )
      end = stop
    elif identity != str(expected):
      raise DataError(
        f"{path}:{number}: ID {identity[:40]!r}; expected {expected}, or a "
        "blank line before a new sentence."
      )
    else:
      words.append((number, fields))
  if end > len(words):
    raise DataError(
      f"{path}:{rows[-1][0]}: a range of words ends with {end}, but the "
      f"sentence with {len(words)}."
    )
  return words


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
  heads, labels = [], []
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
  _check_no_cycle([where for where, _, _ in arcs], heads)
  return tuple(heads), tuple(labels)


def _check_no_cycle(places: Sequence[str], heads: Sequence[int]) -> None:
  """Raises DataError unless all words lead to the root, 0."""
  done = {0}
  for word in range(1, len(heads) + 1):
    trail: dict[int, None] = {}
    while word not in done:
      if word in trail:
        seen = [*trail]
        cycle = " -> ".join(map(str, [*seen[seen.index(word) :], word]))
        raise DataError(
          f"{places[word - 1]}: a cycle of heads, {cycle[:60]}; expected a "
          "tree, in which all words lead to the root."
        )
      trail[word] = None
      word = heads[word - 1]
    done.update(trail)
