"""Mentions: parts of a text that a task is about, as characters and as tokens.

Relations and coreference both ask how two of them belong together. A text that
is longer than a row is cut around its mentions: none is ever left out.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.core.errors import DataError
from maskedlm.data.tokenizers.tokenizer import Tokenizer


class Mention(NamedTuple):
  """text[begin:end], of characters (code points)."""

  begin: int
  end: int


class TokenizedMentions(NamedTuple):
  """A text's tokens, as many as fit, and its mentions within them."""

  ids: np.ndarray  # [n] int32, without specials.
  spans: np.ndarray  # [M, 2] int32: first and last token of each mention.
  truncated: bool  # Whether tokens were left out.


def find_mention(
  text: str, name: str, offset: str, *, what: str, where: str
) -> Mention:
  """The mention that a file gives by its text and its offset.

  Args:
    text: what it is in.
    name: the mention's text.
    offset: characters before it, as they are written in the file.
    what, where: for messages: the field's name, FILE:LINE.

  Raises:
    DataError: an empty mention, an offset that is no number, or one at which
      the text is another.
  """
  if not name.strip():
    raise DataError(f"{where}: {what} is empty; expected a part of the text.")
  if not re.fullmatch("[0-9]+", offset.strip()):
    raise DataError(
      f"{where}: the offset {offset!r} of {what} is not a number; expected how "
      "many characters are before it, such as 17."
    )
  begin = int(offset)
  found = text[begin : begin + len(name)]
  if found == name:
    return Mention(begin, begin + len(name))
  places = [m.start() for m in re.finditer(re.escape(name), text)]
  nearest = min(places, key=lambda place: abs(place - begin), default=None)
  hint = "it is nowhere in it" if nearest is None else f"it is at {nearest}"
  raise DataError(
    f"{where}: {what} {name!r} is not at its offset {begin}, where the text "
    f"has {found!r}; {hint}. Offsets are of characters, not of bytes."
  )


def tokenize_around(
  tokenizer: Tokenizer, text: str, mentions: Sequence[Mention], capacity: int
) -> TokenizedMentions:
  """The tokens of a text around its mentions.

  If the text is too long, but not what is from the first mention to the last,
  that is kept with as much as fits of what is before and after it, the same of
  both where there is as much. If that is too long as well, the tokens nearest
  to any mention are kept, and what is between drops out. If the mentions alone
  are too long, each keeps its first capacity / M tokens.

  Args:
    tokenizer: its offsets are what mentions are found by.
    text: the whole of it.
    mentions: M parts of it. One without a token of its own (whitespace,
      control characters) gets the next one.
    capacity: the most tokens, M or more.
  """
  encoded = tokenizer.encode(text)
  if not len(encoded.ids):
    ids = np.array([tokenizer.special.unk], np.int32)
    return TokenizedMentions(ids, np.zeros((len(mentions), 2), np.int32), False)
  spans = np.array([_tokens(encoded.offsets, *m) for m in mentions])
  count, sizes = len(encoded.ids), spans[:, 1] - spans[:, 0] + 1
  if count > capacity and sizes.sum() > capacity:
    sizes = np.minimum(sizes, capacity // len(mentions))
    spans[:, 1] = spans[:, 0] + sizes - 1
  kept = _nearest(count, spans, capacity)
  return TokenizedMentions(
    ids=encoded.ids[kept],
    spans=np.searchsorted(kept, spans).astype(np.int32),
    truncated=len(kept) < count,
  )


def _tokens(offsets: np.ndarray, begin: int, end: int) -> tuple[int, int]:
  """The first and the last token that overlap text[begin:end]."""
  inside = np.flatnonzero((offsets[:, 0] < end) & (offsets[:, 1] > begin))
  if len(inside):
    return int(inside[0]), int(inside[-1])
  after = np.flatnonzero(offsets[:, 0] >= begin)
  place = int(after[0]) if len(after) else len(offsets) - 1
  return place, place


def _nearest(count: int, spans: np.ndarray, capacity: int) -> np.ndarray:
  """Which of a text's tokens to keep: [n], sorted; all, if they fit."""
  low, high = spans.min(), spans.max()
  if high - low < capacity:
    spans = np.array([[low, high]])
  places = np.arange(count)[:, None]
  distance = np.maximum(spans[:, 0] - places, places - spans[:, 1])
  distance = np.maximum(distance, 0).min(axis=1)
  return np.sort(np.argsort(distance, kind="stable")[:capacity])
