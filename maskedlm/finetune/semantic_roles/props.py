"""Reads and writes predicates in the columns of CoNLL-2005 and CoNLL-2012.

A word on each line, a blank line after a sentence. After the other columns
there is one for each predicate of the sentence, in the order of their words,
with the spans of its arguments in brackets: (ARG1*, *, *), (V*).

  CoNLL-2005  word, any columns (part of speech, parse, entity, sense), the
              predicate's lemma or -, arguments. The columns of arguments are
              the last ones; the predicates' has no bracket or *
  CoNLL-2012  document, part, word number, word, part of speech, parse, lemma,
              frameset, sense, speaker, entity, arguments, coreference. A word
              with a frameset is a predicate

CoNLL-2012 is recognised by its word numbers. Lines with #begin document, #end
document and -DOCSTART- separate sentences; a line "# text" before a sentence is
a comment, and reported.
"""

import pathlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.lines import read_lines
from maskedlm.finetune.common.bio import Entity
from maskedlm.finetune.semantic_roles.predicates import (
  Example,
  Predicate,
  make_predicate,
  with_verb,
)
from maskedlm.runtime import console

_DOCUMENT = re.compile(r"#begin document|#end document|-DOCSTART-")
_FIELD = re.compile(r"((?:\([^()*\s]+)*)\*((?:[^()*\s]*\))*)")
# Of CoNLL-2012.
_PART, _NUMBER, _WORD, _LEMMA, _FRAMESET = 1, 2, 3, 6, 7
_FIRST_ROLES, _LEAST = 11, 12
_NONE = ("-", "_")


class _Line(NamedTuple):
  number: int
  fields: tuple[str, ...]


def read_file(path: str) -> list[Example]:
  """Returns the sentences of a file; its first word's line decides the format.

  Raises:
    DataError: the file is missing, not text or has no word; the lines of a
      sentence differ in their numbers of columns; there are more or fewer
      columns of arguments than predicates; a bracket is not closed or not
      opened, or is within another; see also predicates.make_predicate.
  """
  sentences = list(_sentences(path))
  if not sentences:
    raise DataError(
      f"{path}: the file has no words; expected a word on each line, its "
      "predicate's lemma (or -) and the columns of arguments."
    )
  if _is_conll_2012(sentences[0]):
    return [_from_2012(path, s) for s in sentences]
  target = _target_column(sentences)
  if not target:
    raise DataError(
      f"{path}:{sentences[0][0].number}: no column of predicates after the "
      "word's; expected the word, any columns, the predicate's lemma or -, and "
      "a column of arguments for each predicate."
    )
  return [_from_2005(path, s, target) for s in sentences]


def _sentences(path: str) -> Iterator[list[_Line]]:
  sentence: list[_Line] = []
  comments: list[_Line] = []
  dropped: list[int] = []
  for number, text in enumerate([*read_lines(pathlib.Path(path)), ""], 1):
    if not text.strip() or _DOCUMENT.match(text):
      if sentence:
        yield sentence
        sentence = []
      dropped += [line.number for line in comments]
      comments = []
      continue
    line = _Line(number, tuple(text.split()))
    if not sentence and text.startswith("# "):
      comments.append(line)
      continue
    if comments:  # Those that have a word's columns are words.
      count = len(line.fields)
      while comments and len(comments[-1].fields) == count:
        sentence.insert(0, comments.pop())
      dropped += [line.number for line in comments]
      comments = []
    sentence.append(line)
    if len(line.fields) != len(sentence[0].fields):
      raise DataError(
        f"{path}:{number}: {counted(len(line.fields), 'column')}; expected "
        f"{len(sentence[0].fields)}, as in the sentence's first line "
        f"({sentence[0].number}), or a blank line between sentences."
      )
  if dropped:
    console.log(
      f"{path}: comments (# ...): {len(dropped):,}, the first in line "
      f"{dropped[0]}"
    )


def _is_conll_2012(sentence: Sequence[_Line]) -> bool:
  fields = sentence[0].fields
  return (
    len(fields) >= _LEAST
    and fields[_PART].isdecimal()
    and (fields[_NUMBER] == "0")
  )


def _target_column(sentences: Sequence[Sequence[_Line]]) -> int:
  """Returns the column of predicates: the last without any bracket or *."""
  found: Counter[int] = Counter()
  for sentence in sentences:
    column = len(sentence[0].fields)
    while column and any(
      set("()*") & set(line.fields[column - 1]) for line in sentence
    ):
      column -= 1
    found[column - 1] += 1
  return max(found.most_common(1)[0][0], 0)


def _from_2005(path: str, lines: Sequence[_Line], target: int) -> Example:
  if len(lines[0].fields) <= target:
    raise DataError(
      f"{path}:{lines[0].number}: {counted(len(lines[0].fields), 'column')}; "
      f"expected at least {target + 1}, the last of them the predicates', as "
      "in other sentences."
    )
  targets = [line.fields[target] for line in lines]
  # Columns before may have senses (01) or rolesets (go.01).
  return _example(
    path,
    lines,
    [line.fields[0] for line in lines],
    {i: "" for i, x in enumerate(targets) if x not in _NONE},
    range(target + 1, len(lines[0].fields)),
  )


def _from_2012(path: str, lines: Sequence[_Line]) -> Example:
  if len(lines[0].fields) < _LEAST:
    raise DataError(
      f"{path}:{lines[0].number}: {counted(len(lines[0].fields), 'column')}; "
      f"CoNLL-2012 has at least {_LEAST}."
    )
  for i, line in enumerate(lines):
    if line.fields[_NUMBER] != str(i):
      raise DataError(
        f"{path}:{line.number}: the word number {line.fields[_NUMBER]!r}; "
        f"expected {i}, or a blank line before a new sentence."
      )
  return _example(
    path,
    lines,
    [line.fields[_WORD] for line in lines],
    {
      i: f"{line.fields[_LEMMA]}.{line.fields[_FRAMESET]}"
      for i, line in enumerate(lines)
      if line.fields[_FRAMESET] not in _NONE
    },
    range(_FIRST_ROLES, len(lines[0].fields) - 1),
  )


def _example(
  path: str,
  lines: Sequence[_Line],
  words: Sequence[str],
  senses: dict[int, str],
  columns: Sequence[int],
) -> Example:
  where = f"{path}:{lines[0].number}"
  if len(senses) != len(columns):
    raise DataError(
      f"{where}: {counted(len(senses), 'predicate')}, but "
      f"{counted(len(columns), 'column')} of arguments; expected a column for "
      "each predicate of the sentence."
    )
  return Example(
    words=tuple(words),
    predicates=tuple(
      make_predicate(
        index,
        _read_column(path, lines, column),
        count=len(lines),
        where=where,
        sense=sense,
      )
      for (index, sense), column in zip(senses.items(), columns, strict=True)
    ),
    where=where,
  )


def _read_column(
  path: str, lines: Sequence[_Line], column: int
) -> list[Entity]:
  """Returns the bracketed spans of a column."""
  found: list[Entity] = []
  label, begin = "", 0
  for i, line in enumerate(lines):
    field = line.fields[column]
    where = f"{path}:{line.number}: {field!r} in column {column + 1}"
    match = _FIELD.fullmatch(field)
    if not match:
      raise DataError(f"{where}; expected *, (LABEL*, *) or (LABEL*).")
    opened = match[1].split("(")[1:]
    closed = match[2].split(")")[:-1]
    if len(opened) + bool(label) > 1:
      raise DataError(
        f"{where} opens a bracket within {label or opened[0]}; the arguments "
        "of one predicate must not overlap."
      )
    if opened:
      label, begin = opened[0], i
    if closed:
      if len(closed) > 1 or closed[0] not in ("", label) or not label:
        raise DataError(
          f"{where} closes a bracket that is not open; expected (LABEL* before."
        )
      found.append(Entity(label, begin, i + 1))
      label = ""
  if label:
    raise DataError(
      f"{path}:{lines[begin].number}: ({label}* in column {column + 1} is not "
      "closed in the sentence; expected *) at its last word."
    )
  return found


def format_2005(
  sentences: Iterable[tuple[Sequence[str], Sequence[Predicate]]],
) -> str:
  """Returns words, a column of predicates and the arguments' columns.

  Without the first column it is what srl-eval.pl reads.
  """
  text = []
  for words, predicates in sentences:
    places = {p.index for p in predicates}
    columns = [
      words,
      [word if i in places else "-" for i, word in enumerate(words)],
      *(_column(p, len(words)) for p in predicates),
    ]
    text.append(_block(columns))
  return "".join(text)


def format_props(
  sentences: Iterable[tuple[Sequence[str], Sequence[Predicate]]],
) -> str:
  """Returns the input of srl-eval.pl: predicates and arguments, no words."""
  return "".join(
    "".join(f"{line.split(' ', 1)[1]}\n" for line in block.splitlines()) + "\n"
    for block in (format_2005([x]).rstrip("\n") for x in sentences)
  )


def format_2012(
  sentences: Iterable[tuple[Sequence[str], Sequence[Predicate]]],
) -> str:
  """Returns CoNLL-2012 columns, with - or * in those that are unknown.

  The lemma of a predicate without a sense is its word, and its frameset XX.
  """
  text = ["#begin document (predictions); part 000\n"]
  for words, predicates in sentences:
    count = len(words)
    senses = {p.index: p.sense or f"{words[p.index]}.XX" for p in predicates}
    split = [senses.get(i, "-.-").rpartition(".") for i in range(count)]
    columns = [
      ["predictions"] * count,
      ["0"] * count,
      [str(i) for i in range(count)],
      words,
      ["-"] * count,
      ["*"] * count,
      [lemma for lemma, _, _ in split],
      [frameset for _, _, frameset in split],
      *[["-"] * count] * 2,
      ["*"] * count,
      *(_column(p, count) for p in predicates),
      ["-"] * count,
    ]
    text.append(_block(columns))
  return "".join([*text, "#end document\n"])


def _column(predicate: Predicate, count: int) -> list[str]:
  fields = ["*"] * count
  for label, begin, end in with_verb(predicate):
    fields[begin] = f"({label}{fields[begin]}"
    fields[end - 1] += ")"
  return fields


def _block(columns: Sequence[Sequence[str]]) -> str:
  """Returns the lines of a sentence; a space in a field becomes _."""
  rows = zip(*columns, strict=True)
  return (
    "".join(f"{' '.join('_'.join(x.split()) for x in row)}\n" for row in rows)
    + "\n"
  )
