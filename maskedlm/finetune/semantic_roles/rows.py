"""Encoder rows of sentences with predicates.

A sentence is a row. One that is longer than a row is read in windows
(data/labelled/windows.py); a predicate belongs to the window in which it has
the most context, and its arguments are sought there. A row holds the arguments
of at most PER_ROW predicates, so a sentence with more of them has more rows.
"""

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.data.labelled import bio
from maskedlm.data.labelled.formats.predicates import (
  Example,
  Predicate,
  with_verb,
)
from maskedlm.data.labelled.windows import cut_windows
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import unseen_labels
from maskedlm.finetune.common.word_rows import (
  Targets,
  WordWindow,
  word_rows,
)
from maskedlm.finetune.contract import Rows
from maskedlm.finetune.semantic_roles.predicates import clip

PER_ROW = 6


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  labels: Sequence[str],
  *,
  length: int,
  stride: int,
) -> Rows:
  """Returns the rows: [CLS] subwords [SEP], with the words of a window.

  Rows.tokens has, in addition to the usual two, arrays [..., l] of words,
  followed by zeros, as there are never more words than tokens l:
    word_starts: the place of each word's first token.
    is_predicate: 1 for the predicates of the sentence.
    is_judged: 1 for the words of which this row decides whether they are
      predicates: each word of the sentence in exactly one row.
    is_given: 1 for the predicates whose arguments this row labels.
    role_tags [PER_ROW, l]: the tags for each of them; UNSEEN for a tag without
      an id, which Rows.notes reports.
  Rows.values has predicates [n, PER_ROW], the words they are at, is_slot
  [n, PER_ROW], 1 where there is one, and first_word [n], the window's first.

  Args:
    examples: the sentences.
    tokenizer: the encoder's.
    labels: the tags, by id.
    length: L, the largest number of tokens in a row.
    stride: tokens from one window to the next; 0 for half a row.
  """
  ids_of = {tag: i for i, tag in enumerate(labels)}
  beyond = []  # Of each window, the arguments that are not whole in it.

  def targets(index: int, w: WordWindow):
    kept = [
      p
      for p in examples[index].predicates or ()
      if w.keep_begin <= p.index < w.keep_end
    ]
    args = [arg for p in kept for arg in p.args]
    beyond.append(sum(not w.begin <= x.begin <= x.end <= w.end for x in args))
    is_predicate = np.zeros(w.end - w.begin, np.int32)
    is_predicate[[p.index - w.begin for p in kept]] = 1
    for begin in range(0, max(len(kept), 1), PER_ROW):
      by_token, by_row = _slots(w, kept[begin : begin + PER_ROW], ids_of)
      by_token |= {
        "word_starts": w.first,
        "is_predicate": is_predicate,
        # Once, although many predicates of a window are several rows.
        "is_judged": w.is_kept() * (begin == 0),
      }
      yield by_token, by_row

  rows = word_rows(
    [example.words for example in examples],
    tokenizer,
    length=length,
    windows=functools.partial(cut_windows, stride=stride),
    targets=targets,
  )
  args = [
    (arg.type, example.where)
    for example in examples
    for predicate in example.predicates or ()
    for arg in predicate.args
  ]
  unseen = [x for x in args if f"B-{x[0]}" not in ids_of]
  return rows._replace(
    notes=(
      *unseen_labels.unseen_notes(unseen),
      *_beyond_note(sum(beyond), len(args), length),
    )
  )


def _slots(
  w: WordWindow, predicates: Sequence[Predicate], ids_of: Mapping[str, int]
) -> Targets:
  """Returns the arrays of a row's at most PER_ROW predicates."""
  count = w.end - w.begin
  places, is_slot = np.zeros((2, PER_ROW), np.int32)
  role_tags = np.zeros((PER_ROW, count), np.int32)
  is_given = np.zeros(count, np.int32)
  for slot, predicate in enumerate(predicates):
    parts = clip(with_verb(predicate), w.begin, w.end)
    role_tags[slot] = [
      ids_of.get(tag, unseen_labels.UNSEEN)
      for tag in bio.entity_tags(parts, count)
    ]
    places[slot] = predicate.index - w.begin
  is_slot[: len(predicates)] = 1
  is_given[places[: len(predicates)]] = 1
  return (
    {"role_tags": role_tags, "is_given": is_given},
    {"predicates": places, "is_slot": is_slot, "first_word": w.begin},
  )


def _beyond_note(beyond: int, total: int, length: int) -> list[str]:
  """Returns a note about arguments outside their predicate's window, or []."""
  if not beyond:
    return []
  return [
    f"{beyond:,} of {counted(total, 'argument')} are not whole in the "
    f"window of their predicate, as their sentences are longer than a row of "
    f"{length} tokens; their parts in it are learnt, and they count as missed; "
    "raise data.length (beside a checkpoint, --length)"
  ]
