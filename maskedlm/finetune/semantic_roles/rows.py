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
  VERB,
  Example,
  Predicate,
  with_verb,
)
from maskedlm.data.labelled.windows import cut_windows
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common.labels import Gold, ids_of, label_ids
from maskedlm.finetune.common.word_rows import Targets, WordWindow, word_rows
from maskedlm.finetune.contract import Rows

PER_ROW = 6


def _roles(example: Example) -> list[tuple[str, str]]:
  """Returns (role, FILE:LINE) of each argument but V."""
  args = (arg for p in example.predicates or () for arg in p.args)
  return [(arg.type, example.where) for arg in args if arg.type != VERB]


GOLD = Gold(
  "predicates", "them with their arguments", _roles, "argument", "srl_f1"
)


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
    labels: the tags, by id.
    length: L, the largest number of tokens in a row.
    stride: tokens from one window to the next; 0 for half a row.
  """
  ids = ids_of(labels)
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
      group = kept[begin : begin + PER_ROW]
      by_token, by_row = _slots(w, group, len(examples[index].words), ids)
      by_word = {
        "word_starts": w.first,
        "is_predicate": is_predicate,
        # Once, although many predicates of a window are several rows.
        "is_judged": w.is_kept() * (begin == 0),
      }
      yield {**by_token, **by_word}, by_row

  rows = word_rows(
    [example.words for example in examples],
    tokenizer,
    length=length,
    windows=functools.partial(cut_windows, stride=stride),
    targets=targets,
  )
  total = sum(len(p.args) for x in examples for p in x.predicates or ())
  roles = {bio.split_tag(tag)[1] for tag in labels}
  not_whole = (
    f"{sum(beyond):,} of {counted(total, 'argument')} are not whole in the "
    f"window of their predicate, as their sentences are longer than a row of "
    f"{length} tokens; their parts in it are learnt, and they count as missed; "
    "raise data.length (beside a checkpoint, --length)"
  )
  return rows._replace(
    notes=(*GOLD.unseen_notes(examples, roles), *[not_whole] * any(beyond))
  )


def _slots(
  w: WordWindow,
  predicates: Sequence[Predicate],
  num_words: int,
  ids: Mapping[str, int],
) -> Targets:
  """Returns the arrays of a row's predicates, of a sentence of num_words."""
  count = w.end - w.begin
  places, is_slot = np.zeros((2, PER_ROW), np.int32)
  role_tags = np.zeros((PER_ROW, count), np.int32)
  is_given = np.zeros(count, np.int32)
  for slot, predicate in enumerate(predicates):
    tags = bio.entity_tags(with_verb(predicate), num_words)[w.begin : w.end]
    # An argument may have begun before the window.
    role_tags[slot] = label_ids(bio.repair_tags(tags), ids)
    places[slot] = predicate.index - w.begin
  is_slot[: len(predicates)] = 1
  is_given[places[: len(predicates)]] = 1
  return (
    {"role_tags": role_tags, "is_given": is_given},
    {"predicates": places, "is_slot": is_slot, "first_word": w.begin},
  )
