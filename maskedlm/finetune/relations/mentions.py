"""Mentions: the two parts of a text that are related, among its tokens.

A text that is longer than a row is cut around its mentions, so none is ever
left out.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.data.labelled.formats.relations import Mention
from maskedlm.data.tokenizers.tokenizer import Tokenizer


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
