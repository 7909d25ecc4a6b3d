"""Splits text into words, and tokenizes each word separately.

Tasks that label words need the tokens of each word; since each word is
tokenized alone, the alignment is exact.
"""

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from maskedlm.data.tokenizers.tokenizer import Tokenizer

_CACHED = 1 << 18  # Words whose tokens are cached.
# Emoji of several characters that are displayed as one.
_JOINER = "\u200d"
_SKIN_TONES = "".join(map(chr, range(0x1F3FB, 0x1F400)))
_FLAGS = "".join(map(chr, range(0x1F1E6, 0x1F200)))  # Two letters each.


def split_words(text: str) -> list[tuple[int, int]]:
  """Returns the character offsets (begin, end) of the words of a text.

  Words are separated by whitespace; punctuation and symbols at their borders
  are words of their own, and a run of the same character ("...") is one. Inside
  a word they stay ("don't", "3.5"), and so do @ and # before one. Texts without
  spaces between words (Chinese, Thai) must be split by other means.
  """
  return [
    word
    for chunk in re.finditer(r"\S+", text)
    for word in _split_chunk(text, *chunk.span())
  ]


def word_encoder(
  tokenizer: Tokenizer,
) -> Callable[[Sequence[str]], list[np.ndarray]]:
  """Returns a function from a sentence's words to each one's ids, int32 [n].

  Together they are the tokens of the words joined by spaces: each word but the
  first has the form that it has after a space, with any type of tokenizer. A
  word without tokens (control characters) is [UNK], so n > 0.
  """

  @functools.lru_cache(maxsize=_CACHED)
  def ids_of(word: str, is_first: bool) -> np.ndarray:
    ids = tokenizer.encode(word).ids
    for before in ("", "a"):  # Some drop a space at the beginning of a text.
      if is_first or not len(ids) or tokenizer.follows_space[ids[0]]:
        break
      skipped = len(tokenizer.encode(before).ids)
      ids = tokenizer.encode(f"{before} {word}").ids[skipped:]
    return ids if len(ids) else np.array([tokenizer.special.unk], np.int32)

  return lambda words: [ids_of(word, i == 0) for i, word in enumerate(words)]


def _split_chunk(text: str, begin: int, end: int) -> list[tuple[int, int]]:
  """Returns the words of a text without whitespace."""
  runs = list(_split_runs(text, begin, end))
  inner = [i for i, run in enumerate(runs) if not _is_symbol(text[run[0]])]
  if not inner:
    return runs
  first, last = inner[0], inner[-1]
  if first and text[slice(*runs[first - 1])] in ("@", "#"):
    first -= 1
  word = runs[first][0], runs[last][1]
  return [*runs[:first], word, *runs[last + 1 :]]


def _split_runs(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
  """Yields runs without symbols, and symbols; a run of equal ones is one.

  A symbol includes its marks, symbols joined to it, and the second half of a
  flag.
  """
  while begin < end:
    stop = begin + 1
    if not _is_symbol(text[begin]):
      while stop < end and not _is_symbol(text[stop]):
        stop += 1
    else:
      while stop < end and (
        _is_mark(text[stop])
        or text[stop] == text[begin]
        or (text[stop - 1] == _JOINER and _is_symbol(text[stop]))
        or (text[stop - 1] in _FLAGS and text[stop] in _FLAGS)
      ):
        stop += 1
    yield begin, stop
    begin = stop


def _is_symbol(character: str) -> bool:
  """Returns whether it is punctuation or a symbol, such as $ or an emoji."""
  return unicodedata.category(character)[0] in "PS"


def _is_mark(character: str) -> bool:
  """Returns whether it is an accent, joiner or tone of the character before."""
  return (
    unicodedata.category(character)[0] == "M"
    or character == _JOINER
    or character in _SKIN_TONES
  )
