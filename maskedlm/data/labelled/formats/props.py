"""Predicates in the columns of CoNLL-2005, and of srl-eval.pl.

  The   DT  -     (A1*  (A0*
  shop  NN  -     *)    *
  they  PRP -     (A0*) *
  like  VBP like  (V*)  *)
  shut  VBD shut  *     (V*)

That is the word, any columns (part of speech, parse, entity, sense), the
predicate's lemma or -, and for each predicate of the sentence, in the order of
their words, the spans of its arguments (span_columns.py). The column of
predicates is the last without a bracket or *.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Sequence

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bad_rows
from maskedlm.data.labelled.columns import Block, Columns, format_columns
from maskedlm.data.labelled.formats import span_columns
from maskedlm.data.labelled.formats.predicates import (
  Example,
  Predicate,
  make_predicate,
  with_verb,
)

NONE = ("-", "_")  # What words without a predicate have.
_Sentences = Iterable[tuple[Sequence[str], Sequence[Predicate]]]


def read_sentences(columns: Columns) -> list[Example]:
  """Returns the sentences of a file.

  Raises:
    DataError: there is no column of predicates; see also make_example.
  """
  path = columns.path
  target = _target_column(columns.blocks)
  if not target:
    raise DataError(
      f"{path}:{columns.blocks[0].numbers[0]}: no column of predicates "
      "after the word's; expected the word, any columns, the predicate's lemma "
      "or -, and a column of arguments for each predicate."
    )
  read = functools.partial(_sentence, path, target=target)
  return [*bad_rows.map_rows(read, columns.blocks)]


def make_example(
  path: str,
  block: Block,
  word_column: int,
  senses: dict[int, str],
  columns: Sequence[int],
) -> Example:
  """Returns a sentence, given its predicates and the columns of arguments.

  `senses` has the senses, or "", of the predicates by their places.

  Raises:
    DataError: there are more or fewer columns than predicates; see
      span_columns.read_spans and predicates.make_predicate.
  """
  where = f"{path}:{block.numbers[0]}"
  if len(senses) != len(columns):
    raise DataError(
      f"{where}: {counted(len(senses), 'predicate')}, but "
      f"{counted(len(columns), 'column')} of arguments; expected a column for "
      "each predicate of the sentence."
    )
  return Example(
    words=tuple(row[word_column] for row in block.rows),
    predicates=tuple(
      make_predicate(
        index,
        span_columns.read_spans(path, block, column),
        count=len(block.rows),
        where=where,
        sense=sense,
      )
      for (index, sense), column in zip(senses.items(), columns, strict=True)
    ),
    where=where,
  )


def _target_column(blocks: Sequence[Block]) -> int:
  """Returns the column of predicates: the last without any bracket or *."""
  counts: Counter[int] = Counter()
  for block in blocks:
    column = len(block.rows[0])
    while column and any(
      set("()*") & set(row[column - 1]) for row in block.rows
    ):
      column -= 1
    counts[column - 1] += 1
  return max(counts.most_common(1)[0][0], 0)


def _sentence(path: str, block: Block, target: int) -> Example:
  count = len(block.rows[0])
  if count <= target:
    raise DataError(
      f"{path}:{block.numbers[0]}: {counted(count, 'column')}; "
      f"expected at least {target + 1}, the last of them the predicates', as "
      "in other sentences."
    )
  targets = (row[target] for row in block.rows)
  # Columns before may have senses (01) or rolesets (go.01).
  senses = {i: "" for i, x in enumerate(targets) if x not in NONE}
  return make_example(path, block, 0, senses, range(target + 1, count))


def format_sentences(sentences: _Sentences) -> str:
  """Returns words, a column of predicates and the arguments' columns."""
  return format_columns(
    ([words, *_columns(words, args)] for words, args in sentences), " "
  )


def format_props(sentences: _Sentences) -> str:
  """Returns the input of srl-eval.pl: predicates and arguments, no words."""
  return format_columns((_columns(*sentence) for sentence in sentences), " ")


def _columns(
  words: Sequence[str], predicates: Sequence[Predicate]
) -> list[Sequence[str]]:
  places = {p.index for p in predicates}
  return [
    [word if i in places else "-" for i, word in enumerate(words)],
    *(span_columns.span_column(with_verb(p), len(words)) for p in predicates),
  ]
