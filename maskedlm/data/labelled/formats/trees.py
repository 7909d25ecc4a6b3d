"""Bracketed trees of the Penn Treebank: parses and writes them.

  (S (NP-SBJ (PRP He)) (VP (VBD left)) (. .))

Brackets nest as deep as they like, since nothing here is recursive. A tree is
its words, their tags, and its brackets in the order in which they open, so
that (NP (QP ...)) over the same words is NP before QP.
"""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from maskedlm.core.errors import DataError

# Labels of the bracket around a tree; "" is that of ( (S ...)).
ROOTS = ("", "ROOT", "TOP", "S1", "VROOT")
_TRACE = "-NONE-"  # The tag of an empty element, such as *T*-1.
_TOKEN = re.compile(r"[()]|[^ \t\r\n\f\v()]+")
_SUCH_AS = "(S (NP (PRP He)) (VP (VBD left)))"
_FUNCTION = re.compile(r"(?<=.)[-=].*", re.DOTALL)
_INDEX = re.compile(r"(?<=.)[-=][0-9]+(?![^-=])")
# How treebanks write what would be brackets, quotes or escapes.
_PLAIN = {
  "-LRB-": "(",
  "-RRB-": ")",
  "-LSB-": "[",
  "-RSB-": "]",
  "-LCB-": "{",
  "-RCB-": "}",
  "``": '"',
  "''": '"',
}


class Bracket(NamedTuple):
  """A labelled bracket around the words begin to end - 1."""

  label: str
  begin: int
  end: int


class Example(NamedTuple):
  """A sentence and its tree, without the bracket around it and traces."""

  words: tuple[str, ...]  # As in trees: -LRB- may stand for a bracket.
  tags: tuple[str, ...] | None = None
  brackets: tuple[Bracket, ...] | None = None  # As they open.
  root: str | None = None  # The label around it, one of ROOTS, if there is one.
  lines: tuple[int, ...] = ()  # Line numbers of the words.
  document: str = ""  # The file's name.
  where: str = ""  # FILE:LINE of the tree.


@dataclasses.dataclass(slots=True)
class _Open:
  """A bracket that is not closed yet."""

  place: int  # In the list of brackets.
  begin: int
  label: str = ""
  word: str = ""
  has_brackets: bool = False


def parse_trees(
  pieces: Iterable[tuple[int, str]], name: str
) -> Iterator[tuple[Example, int]]:
  """Yields each tree in pieces of text, and how many traces it had.

  The pieces are (line number, text) of the file `name`. Trees may begin and end
  anywhere in a piece. One of nothing but traces has no words.

  Raises:
    DataError: brackets are not balanced, or one has no label, no word, or a
      word beside other words or brackets.
  """
  stack: list[_Open] = []
  leaves: list[tuple[str, str, int]] = []  # Word, tag, line.
  brackets: list[Bracket | None] = []
  first = traces = 0
  suspect = 0  # The first line that looks like a new tree within one.
  for number, text in pieces:
    if stack and not suspect and text.startswith("("):
      suspect = number
    for token in _TOKEN.findall(text):
      where = f"{name}:{number}"
      if token != ")" and stack:
        _check_place(stack[-1], token, where, is_outer=len(stack) == 1)
      if token == "(":
        if stack:
          stack[-1].has_brackets = True
        else:
          first = number
        stack.append(_Open(len(brackets), len(leaves)))
        brackets.append(None)
      elif not stack:
        problem = f"{token[:40]!r} is outside of all brackets"
        if token == ")":
          problem = "a ) closes no bracket"
        raise DataError(
          f"{where}: {problem}; expected trees such as {_SUCH_AS}."
        )
      elif token != ")":
        inner = stack[-1]
        if not inner.label:
          inner.label = token
        else:
          inner.word = token
      else:
        closed = stack.pop()
        if not closed.word:
          if not closed.has_brackets:
            raise DataError(
              f"{where}: ({closed.label}) has no word; expected (TAG "
              f"word) or brackets in it, as in {_SUCH_AS}."
            )
          if closed.begin < len(leaves):  # Else it holds traces alone.
            brackets[closed.place] = Bracket(
              closed.label, closed.begin, len(leaves)
            )
        elif closed.label == _TRACE:
          traces += 1
        else:
          leaves.append((closed.word, closed.label, number))
        if not stack:
          where = f"{name}:{first}"
          yield _make_example(leaves, brackets, where), traces
          leaves, brackets = [], []
          traces = suspect = 0
  if stack:
    hint = f", perhaps before line {suspect}" if suspect else ""
    missing = "a )" if len(stack) == 1 else f"{len(stack):,} )"
    raise DataError(
      f"{name}:{first}: the tree that begins here is not closed: {missing} "
      f"missing{hint}; expected as many ) as (."
    )


def _check_place(inner: _Open, token: str, where: str, is_outer: bool) -> None:
  """Raises DataError if a bracket can't hold what follows."""
  if inner.word or (token != "(" and inner.has_brackets):
    word = inner.word if token == "(" else token
    raise DataError(
      f"{where}: the word {word[:40]!r} is beside another word or a bracket; "
      f"expected a bracket of its own for each word, as in {_SUCH_AS}."
    )
  if token == "(" and not inner.label and not is_outer:
    raise DataError(
      f"{where}: a bracket has no label; expected (LABEL ...), except around a "
      "whole tree."
    )


def _make_example(
  leaves: Sequence[tuple[str, str, int]],
  brackets: Sequence[Bracket | None],
  where: str,
) -> Example:
  labelled = [bracket for bracket in brackets if bracket is not None]
  root = None
  while labelled and labelled[0] in [Bracket(x, 0, len(leaves)) for x in ROOTS]:
    root = labelled.pop(0).label
  return Example(
    words=tuple(word for word, _, _ in leaves),
    tags=tuple(tag for _, tag, _ in leaves),
    brackets=tuple(labelled),
    root=root,
    lines=tuple(line for _, _, line in leaves),
    where=where,
  )


def format_tree(
  words: Sequence[str],
  tags: Sequence[str],
  brackets: Iterable[Bracket],
  root: str,
) -> str:
  """Returns a tree on one line.

  Round brackets in words are written -LRB- and -RRB-, spaces as _. The brackets
  are nested, in the order in which they open; `root` is the label around them.
  """
  opening: list[list[str]] = [[] for _ in words]
  closing = [1] * len(words)
  for label, begin, end in brackets:
    opening[begin].append(f"({label} ")
    closing[end - 1] += 1
  leaves = (
    f"{''.join(opening[i])}({escape(tag)} {escape(word)}{')' * closing[i]}"
    for i, (word, tag) in enumerate(zip(words, tags, strict=True))
  )
  return f"({root} {' '.join(leaves)})"


def escape(word: str) -> str:
  """Returns a word as trees write it."""
  word = word.replace("(", "-LRB-").replace(")", "-RRB-")
  return re.sub(r"[ \t\r\n\f\v]+", "_", word) or "_"


def plain_word(word: str) -> str:
  """Returns a word of a tree as texts write it, for the tokenizer."""
  return _PLAIN.get(word, word.replace("\\/", "/").replace("\\*", "*"))


def plain_label(label: str, *, strip_functions: bool) -> str:
  """Returns NP of NP-SBJ-1; with functions, NP-SBJ.

  Numbers link a bracket to a trace or to another, so they are no functions.
  """
  return (_FUNCTION if strip_functions else _INDEX).sub("", label)


def join_chains(brackets: Iterable[Bracket]) -> dict[tuple[int, int], str]:
  """Returns the labels of each span, outer ones first, joined by spaces.

  A label has no space, so the labels of a chain can be told apart.
  """
  chains: dict[tuple[int, int], list[str]] = {}
  for label, begin, end in brackets:
    chains.setdefault((begin, end), []).append(label)
  return {span: " ".join(labels) for span, labels in chains.items()}


def split_chains(chains: Mapping[tuple[int, int], str]) -> list[Bracket]:
  """Returns the brackets of nested spans, in the order in which they open."""
  order = sorted(chains, key=lambda span: (span[0], -span[1]))
  return [
    Bracket(label, *span) for span in order for label in chains[span].split(" ")
  ]
