"""Encodes documents whole, and counts the tokens of each of their sentences.

The ids of a document are those that the library gives for its text, so a model
is trained on the tokens that it sees at inference: "Ġ" or "▁" stands where the
text has a space, between sentences too. A token belongs to the sentence in
which its text begins, and whitespace to the sentence after it.

Offsets would cost half of the libraries' speed, so sentence_starts.py finds the
places of tokens by what they spell. Only where that fails is a text encoded
again, with offsets. WordPiece as BERT's splits text at whitespace, so each
sentence is encoded by itself. A long document is encoded in overlapping windows
of whole sentences.
"""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.data.tokenizers import sentence_starts
from maskedlm.data.tokenizers.libraries import Backend

WINDOW = 1 << 17  # Characters encoded at a time, in 20 MB of memory.
MAX_WINDOW = 1 << 21
OVERLAP = 256  # Characters, at least, on each side of a cut.
# Whitespace to every library; str.isspace has control characters as well.
_SPACE = re.compile("[ \n\t\xa0\u3000]")


class Text(NamedTuple):
  """A text and its sentences, between which there is whitespace or nothing."""

  text: str
  spans: list[tuple[int, int]]  # Begin and end of each sentence, in order.


# ids [n] int32, and the number of tokens of each sentence.
Encoded = tuple[np.ndarray, np.ndarray]


def make_encoder(
  library: Backend,
  encode: Callable,
  encode_batch: Callable[[list[str]], list[np.ndarray]],
) -> Callable[[Sequence[Text], Counter], list[Encoded]]:
  """Returns Tokenizer.encode_documents, given its encode and encode_batch."""
  find_starts = sentence_starts.make_finder(library)
  separable = _is_separable(library)

  def count_tokens(text: Text, ids: np.ndarray) -> np.ndarray:
    if len(text.spans) < 2:
      return np.full(len(text.spans), len(ids))
    starts = find_starts(text.text, text.spans, ids)
    if starts is None:
      begins = np.maximum.accumulate(encode(text.text).offsets[:, 0])
      starts = np.searchsorted(begins, [end for _, end in text.spans[:-1]])
    return np.diff(starts, prepend=0, append=len(ids))

  def encode_whole(texts: Sequence[Text]) -> list[Encoded]:
    batch = encode_batch([text.text for text in texts])
    return [
      (ids, count_tokens(text, ids))
      for text, ids in zip(texts, batch, strict=True)
    ]

  def encode_any(texts: Sequence[Text], report: Counter) -> list[Encoded]:
    short = iter(encode_whole([t for t in texts if len(t.text) <= WINDOW]))
    return [
      next(short)
      if len(text.text) <= WINDOW
      else _encode_long(text, encode_whole, report)
      for text in texts
    ]

  def encode_words(texts: Sequence[Text], report: Counter) -> list[Encoded]:
    parts = list(map(_separate, texts))
    batch = encode_batch([string for strings, _ in parts for string in strings])
    encoded, place = [], 0
    for strings, glued in parts:
      ids = batch[place : place + len(strings)]
      place += len(strings)
      counts = list(map(len, ids))
      for index, text in reversed(glued):
        counts[index : index + 1] = count_tokens(text, ids[index])
      joined = np.concatenate([np.empty(0, np.int32), *ids])
      encoded.append((joined, np.array(counts, np.int64)))
    return encoded

  return encode_words if separable else encode_any


def _join(parts: Sequence[Encoded]) -> Encoded:
  ids = [np.empty(0, np.int32), *(ids for ids, _ in parts)]
  counts = itertools.chain.from_iterable(counts for _, counts in parts)
  return np.concatenate(ids), np.fromiter(counts, np.int64)


def _cut_text(text: Text, first: int, last: int) -> Text:
  begin = text.spans[first][0] if first else 0
  end = text.spans[last - 1][1] if last < len(text.spans) else len(text.text)
  spans = [(a - begin, b - begin) for a, b in text.spans[first:last]]
  return Text(text.text[begin:end], spans)


# WordPiece

_LOCAL_NORMALIZERS = {
  *("BertNormalizer", "Lowercase", "StripAccents"),
  *("NFC", "NFD", "NFKC", "NFKD", "Sequence"),
}


def _is_separable(library: Backend) -> bool:
  """Returns whether words are encoded by themselves, split as BERT does."""
  if library.kind != "wordpiece":
    return False
  definition = library.definition
  normalizer = definition.get("normalizer") or {"type": "Sequence"}
  steps = [normalizer, *normalizer.get("normalizers", ())]
  splits = definition.get("pre_tokenizer") or {}
  return (
    splits.get("type") == "BertPreTokenizer"
    and all(step.get("type") in _LOCAL_NORMALIZERS for step in steps)
    and all(token["special"] for token in definition.get("added_tokens", ()))
  )


def _is_punctuation(character: str) -> bool:
  """Returns whether it is punctuation to BERT, whatever mark may follow it."""
  if unicodedata.category(character)[0] == "P":
    return True
  # A mark makes another symbol of < = and >.
  return character in "$+^`|~"


def _separate(text: Text) -> tuple[list[str], list[tuple[int, Text]]]:
  """Divides a text where BERT's WordPiece does: at spaces and punctuation.

  Returns:
    The parts, each a sentence or several; the index and Text of the latter.
  """
  string, spans = text
  glued = [
    index
    for index, ((_, end), (begin, _)) in enumerate(itertools.pairwise(spans))
    if (gap := string[end:begin]) not in (" ", "\n")
    and not _SPACE.search(gap)
    and (gap or not _is_punctuation(string[end - 1]))
  ]
  if not glued:
    return [string[begin:end] for begin, end in spans], []
  cuts = sorted({*range(1, len(spans))} - {index + 1 for index in glued})
  parts = [
    _cut_text(text, first, last)
    for first, last in itertools.pairwise([0, *cuts, len(spans)])
  ]
  several = [(i, part) for i, part in enumerate(parts) if len(part.spans) > 1]
  return [part.text for part in parts], several


# Long documents


class _Window(NamedTuple):
  """The sentences first to last - 1, encoded together."""

  first: int
  last: int
  ids: np.ndarray
  starts: np.ndarray  # [last - first + 1]: each one's first token, and the end.


def _encode_long(
  text: Text, encode_whole: Callable, report: Counter
) -> Encoded:
  """Encodes a text in windows that agree about the tokens around each cut.

  They disagree if a window's beginning or end has an effect further away than
  OVERLAP, as in a long run of one letter. Then larger windows are tried. If
  those of MAX_WINDOW disagree, the text is cut there, which the report counts.
  """
  size, n = WINDOW, len(text.spans)
  while True:
    cuts = _cuts(text.spans, size)
    pairs = list(itertools.pairwise([0, *cuts, n]))
    windows = []
    for begin, end in pairs:
      first = _window_begin(text.spans, begin)
      last = _window_end(text.spans, end)
      ids, counts = encode_whole([_cut_text(text, first, last)])[0]
      windows.append(_Window(first, last, ids, np.append(0, np.cumsum(counts))))
    neighbours = zip(itertools.pairwise(windows), cuts, strict=True)
    if all(_agree(a, b, cut, n) for (a, b), cut in neighbours):
      return _join(list(map(_cut_window, windows, *zip(*pairs, strict=True))))
    if size >= MAX_WINDOW:
      report[f"cuts in texts over {MAX_WINDOW:,} characters"] += len(cuts)
      return _join(encode_whole([_cut_text(text, *pair) for pair in pairs]))
    size *= 4


def _cuts(spans: Sequence[tuple[int, int]], size: int) -> list[int]:
  """Returns the sentences at which a new window of about `size` begins."""
  cuts, begin = [], 0
  for index, (_, end) in enumerate(spans):
    if end - begin > size and index:
      cuts.append(index)
      begin = spans[index][0]
  return cuts


def _window_begin(spans: Sequence[tuple[int, int]], cut: int) -> int:
  """Returns the first sentence of the window whose own ones begin at `cut`."""
  first = max(cut - 2, 0)
  while first and spans[cut][0] - spans[first + 1][0] < OVERLAP:
    first -= 1
  return first


def _window_end(spans: Sequence[tuple[int, int]], cut: int) -> int:
  """Returns the end of the window whose own sentences end at `cut`."""
  last = min(cut + 2, len(spans))
  while last < len(spans) and spans[last - 2][1] - spans[cut][0] < OVERLAP:
    last += 1
  return last


def _agree(left: _Window, right: _Window, cut: int, n: int) -> bool:
  """Returns whether two windows have the same tokens around a cut.

  The outermost sentence of each, which the end of the window may change, is
  left out.
  """
  low = right.first + 1 if right.first else 0
  high = left.last - 1 if left.last < n else n
  for begin, end in ((low, cut), (cut, high)):
    (ids, counts), (other_ids, other_counts) = (
      _cut_window(window, begin, end) for window in (left, right)
    )
    if not len(ids) or not np.array_equal(counts, other_counts):
      return False
    if not np.array_equal(ids, other_ids):
      return False
  return True


def _cut_window(window: _Window, begin: int, end: int) -> Encoded:
  starts = window.starts[begin - window.first : end - window.first + 1]
  return window.ids[starts[0] : starts[-1]], np.diff(starts)
