"""Encoder rows of two entities in a sentence, with or without markers.

A text that is longer than a row is cut around its mentions, so none is ever
left out.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.data.batches.text_pairs import text_tokens
from maskedlm.data.labelled import words
from maskedlm.data.labelled.formats.relations import Example, Mention
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common.labels import Gold, ids_of, label_ids
from maskedlm.finetune.contract import Rows

GOLD = Gold(
  "relation",
  "it in the next line, such as Cause-Effect(e1,e2) or Other",
  lambda example: [(example.relation, example.where)],
)


class TokenizedMentions(NamedTuple):
  """The tokens of a text, as many as fit, and its mentions among them."""

  ids: np.ndarray  # [n] int32, without specials.
  spans: np.ndarray  # [M, 2] int32: first and last token of each mention.
  size: int  # Tokens of the whole text; more than n if some were left out.


def tokenize_around(
  tokenizer: Tokenizer, text: str, mentions: Sequence[Mention], capacity: int
) -> TokenizedMentions:
  """Tokenizes a text, and cuts it around its mentions if it is too long.

  If the part from the first mention to the last fits, it is kept whole, with as
  much context as fits, balanced between both sides where possible. Otherwise
  the tokens nearest to any mention are kept, and those in between drop out. If
  the mentions alone are too long, each keeps its first capacity / M tokens.

  Args:
    mentions: M parts of the text. A mention without a token of its own
      (whitespace, control characters) gets the next token.
    capacity: the largest number of tokens, at least M.
  """
  encoded = tokenizer.encode(text)
  if not len(encoded.ids):
    ids = np.array([tokenizer.special.unk], np.int32)
    return TokenizedMentions(ids, np.zeros((len(mentions), 2), np.int32), 1)
  spans = np.array([token_span(encoded.offsets, *m) for m in mentions])
  count, sizes = len(encoded.ids), spans[:, 1] - spans[:, 0] + 1
  if count > capacity and sizes.sum() > capacity:
    sizes = np.minimum(sizes, capacity // len(mentions))
    spans[:, 1] = spans[:, 0] + sizes - 1
  kept = _nearest_tokens(count, spans, capacity)
  return TokenizedMentions(
    ids=encoded.ids[kept],
    spans=np.searchsorted(kept, spans).astype(np.int32),
    size=count,
  )


def token_span(offsets: np.ndarray, begin: int, end: int) -> tuple[int, int]:
  """Returns the first and the last token that overlap text[begin:end]."""
  inside = np.flatnonzero((offsets[:, 0] < end) & (offsets[:, 1] > begin))
  if len(inside):
    return int(inside[0]), int(inside[-1])
  after = np.flatnonzero(offsets[:, 0] >= begin)
  place = int(after[0]) if len(after) else len(offsets) - 1
  return place, place


def _nearest_tokens(count: int, spans: np.ndarray, capacity: int) -> np.ndarray:
  """Returns the indices [n] of the tokens to keep, sorted; all if they fit."""
  low, high = spans.min(), spans.max()
  if high - low < capacity:
    spans = np.array([[low, high]])
  places = np.arange(count)[:, None]
  distance = np.maximum(spans[:, 0] - places, places - spans[:, 1])
  distance = np.maximum(distance, 0).min(axis=1)
  return np.sort(np.argsort(distance, kind="stable")[:capacity])


class Markers(NamedTuple):
  """The tokens before and after an entity, [n] int32 each."""

  begin: np.ndarray
  end: np.ndarray


def make_markers(tokenizer: Tokenizer) -> tuple[Markers, Markers]:
  """Returns the markers of e1 and of e2.

  They are the first four of BERT's [unusedN] if the vocabulary has that many,
  else <e1>, </e1>, <e2> and </e2> spelt with ordinary tokens.

  Raises:
    ConfigError: two of the four have the same tokens.
  """
  unused = [
    (int(match.group(1)), index)
    for index in tokenizer.special_ids.tolist()
    if (match := re.fullmatch(r"\[unused([0-9]+)\]", tokenizer.tokens(index)))
  ]
  tokens = [np.array([index], np.int32) for _, index in sorted(unused)[:4]]
  if len(tokens) < 4:
    spelt = ["<e1>", "</e1>", "<e2>", "</e2>"]
    tokens = words.word_encoder(tokenizer)(["a", *spelt])[1:]
  if len({tuple(ids.tolist()) for ids in tokens}) < 4:
    raise ConfigError(
      "task.pair marks entities, but the tokenizer has no [unusedN] and does "
      "not distinguish <e1>, </e1>, <e2> and </e2>; set "
      "--config.task.pair=spans, which needs no markers."
    )
  return Markers(*tokens[:2]), Markers(*tokens[2:])


def insert_markers(
  piece: TokenizedMentions, markers: Sequence[Markers]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Puts a pair of markers around each of M mentions; without markers, nothing.

  Returns:
    (ids [n], starts [M], spans [M, 2]), int32: the tokens with the markers, the
    index of each begin marker (without markers, of each mention), and the first
    and last token of each mention.
  """
  if not markers:
    return piece.ids, piece.spans[:, 0], piece.spans
  insertions = []  # (place, order within that place, mention, ids)
  for i, ((first, last), marker) in enumerate(
    zip(piece.spans.tolist(), markers, strict=True)
  ):
    # Ends come before begins. Of two mentions that begin or end together, the
    # longer one is outside; of equal ones, the first.
    insertions.append((first, (1, -last, i), i, marker.begin))
    insertions.append((last + 1, (0, -first, -i), i, marker.end))
  insertions.sort(key=lambda x: x[:2])
  starts = np.zeros(len(markers), np.int32)
  moved = np.arange(len(piece.ids))
  parts, begin, shift = [], 0, 0
  for place, (opens, *_), i, ids in insertions:
    parts += [piece.ids[begin:place], ids]
    begin = place
    if opens:
      starts[i] = place + shift
    moved[place:] += len(ids)
    shift += len(ids)
  ids = np.concatenate([*parts, piece.ids[begin:]]).astype(np.int32)
  return ids, starts, moved[piece.spans].astype(np.int32)


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  labels: Sequence[str],
  *,
  markers: Sequence[Markers],
  length: int,
) -> Rows:
  """Returns a row for each sentence: [CLS] text [SEP].

  Args:
    labels: the training set's relations, by id.
    markers: for e1 and for e2; () for none.
    length: L, the largest number of tokens. Longer sentences are cut around the
      entities.

  Returns:
    Rows with int32 values: starts [n, 2], the index of the markers before e1
    and e2 (without markers, of the entities); spans [n, 2, 2], the first and
    last token of each; labels [n], UNSEEN for a relation that is not among
    `labels`, which Rows.notes reports.
  """
  capacity = length - 2 - sum(len(ids) for marker in markers for ids in marker)
  marked, cut = [], []
  for example in examples:
    piece = tokenize_around(
      tokenizer, example.text, (example.e1, example.e2), capacity
    )
    marked.append(insert_markers(piece, markers))
    if piece.size > capacity:
      cut.append(piece.size + length - capacity)
  starts = np.array([x for _, x, _ in marked], np.int32).reshape(-1, 2)
  spans = np.array([x for _, _, x in marked], np.int32).reshape(-1, 2, 2)
  return Rows(
    tokens=text_tokens(tokenizer, [ids for ids, _, _ in marked]),
    values={
      "starts": starts + 1,  # [CLS] precedes them.
      "spans": spans + 1,
      "labels": label_ids([x.relation for x in examples], ids_of(labels)),
    },
    example=np.arange(len(marked)),
    cut=cut,
    notes=GOLD.unseen_notes(examples, labels),
  )
