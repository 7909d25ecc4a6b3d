"""Encoder rows of sentences with predicates.

A sentence is a row. One that is longer than a row is read in windows
(data/labelled/windows.py); a predicate belongs to the window in which it has
the most context, and its arguments are sought there. A row holds the arguments
of at most PER_ROW predicates, so a sentence with more of them has more rows.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.data.labelled import bio, windows
from maskedlm.data.labelled.formats.predicates import (
  Example,
  Predicate,
  with_verb,
)
from maskedlm.data.labelled.words import word_encoder
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import unseen_labels
from maskedlm.finetune.common.text_pairs import text_row
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
  encode_words = word_encoder(tokenizer)
  ids_of = {tag: i for i, tag in enumerate(labels)}
  capacity = length - 2
  made: list[dict[str, np.ndarray]] = []
  owners, cut, unseen, beyond, total = [], [], [], 0, 0
  for index, example in enumerate(examples):
    word_ids = encode_words(example.words)
    longest = max(map(len, word_ids), default=0)
    if longest > capacity:  # A word that no row holds.
      cut.append(longest + 2)
    word_ids = [ids[:capacity] for ids in word_ids]
    sizes = np.array([len(ids) for ids in word_ids], np.int64)
    args = [arg for p in example.predicates or () for arg in p.args]
    total += len(args)
    unseen += [
      (arg.type, example.where) for arg in args if f"B-{arg.type}" not in ids_of
    ]
    for window in windows.cut_windows(sizes, capacity, stride=stride):
      kept = [
        p
        for p in example.predicates or ()
        if window.keep_begin <= p.index < window.keep_end
      ]
      beyond += sum(
        not window.begin <= arg.begin <= arg.end <= window.end
        for p in kept
        for arg in p.args
      )
      shared = _window_arrays(window, kept, word_ids, tokenizer)
      for begin in range(0, max(len(kept), 1), PER_ROW):
        chunk = kept[begin : begin + PER_ROW]
        made.append({**shared, **_slot_arrays(window, chunk, shared, ids_of)})
        shared = {**shared, "is_judged": 0 * shared["is_judged"]}
        owners.append(index)
  return Rows(
    tokens={name: [row[name] for row in made] for name in _TOKENS},
    values={
      name: np.array([row[name] for row in made], np.int32).reshape(
        len(made), *shape
      )
      for name, shape in _VALUES.items()
    },
    example=np.array(owners, np.int64),
    cut=cut,
    notes=(
      *unseen_labels.unseen_notes(unseen),
      *_beyond_note(beyond, total, length),
    ),
  )


_TOKENS = (
  "input_ids",
  "token_type_ids",
  "word_starts",
  "is_predicate",
  "is_judged",
  "is_given",
  "role_tags",
)
_VALUES = {"predicates": (PER_ROW,), "is_slot": (PER_ROW,), "first_word": ()}


def _window_arrays(
  window: windows.Window,
  kept: Sequence[Predicate],
  word_ids: Sequence[np.ndarray],
  tokenizer: Tokenizer,
) -> dict[str, np.ndarray]:
  """Returns the arrays that all rows of a window share."""
  word_ids = word_ids[window.begin : window.end]
  ids = text_row(tokenizer, *word_ids)
  word_starts, is_predicate, is_judged = np.zeros((3, len(ids)), np.int32)
  sizes = np.array([len(x) for x in word_ids], np.int64)
  word_starts[: len(sizes)] = 1 + np.cumsum(sizes) - sizes
  is_predicate[[p.index - window.begin for p in kept]] = 1
  is_judged[
    window.keep_begin - window.begin : window.keep_end - window.begin
  ] = 1
  return {
    "input_ids": ids,
    "token_type_ids": 0 * ids,
    "word_starts": word_starts,
    "is_predicate": is_predicate,
    "is_judged": is_judged,
    "first_word": np.int32(window.begin),
  }


def _slot_arrays(
  window: windows.Window,
  chunk: Sequence[Predicate],
  shared: Mapping[str, np.ndarray],
  ids_of: Mapping[str, int],
) -> dict[str, np.ndarray]:
  """Returns the arrays of a row's at most PER_ROW predicates."""
  length, count = len(shared["input_ids"]), window.end - window.begin
  predicates, is_slot = np.zeros((2, PER_ROW), np.int32)
  role_tags = np.zeros((PER_ROW, length), np.int32)
  is_given = np.zeros(length, np.int32)
  for slot, predicate in enumerate(chunk):
    parts = clip(with_verb(predicate), window.begin, window.end)
    role_tags[slot, :count] = [
      ids_of.get(tag, unseen_labels.UNSEEN)
      for tag in bio.entity_tags(parts, count)
    ]
    predicates[slot] = predicate.index - window.begin
  is_slot[: len(chunk)] = 1
  is_given[predicates[: len(chunk)]] = 1
  return {
    "predicates": predicates,
    "is_slot": is_slot,
    "role_tags": role_tags,
    "is_given": is_given,
  }


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
