"""Hashes the words of a text, and the runs of words in it."""

import functools
import unicodedata

import numpy as np

from maskedlm.data import hashing


def runs_of_words(words: np.ndarray, length: int) -> np.ndarray:
  """Returns a hash of each `length` consecutive words [n], or of all if fewer.

  There is at least one word, from word_hashes.
  """
  size = max(len(words) - length + 1, 1)
  runs = [words[i : i + size] for i in range(min(length, len(words)))]
  return functools.reduce(hashing.bits, runs)


def word_hashes(text: str) -> np.ndarray:
  """Returns a hash of each word, lowercased: uint64 [n].

  A word is a run of letters, digits and their marks, or a single character of a
  script written without spaces between words.
  """
  # One number per character; sources/reader.py has removed lone surrogates.
  points = np.frombuffer(text.lower().encode("utf-32-le"), "<u4")
  category = _categories()[np.minimum(points, _MAX_POINT)]
  begins = (category == _ALONE) | (
    (category == _LETTER) & (np.append(_SPACE, category[:-1]) != _LETTER)
  )
  inside = category != _SPACE
  points, starts = points[inside], np.flatnonzero(begins[inside])
  if not len(starts):
    return np.empty(0, np.uint64)
  lengths = np.diff(np.append(starts, len(points)))
  place = np.arange(len(points)) - np.repeat(starts, lengths)
  with np.errstate(over="ignore"):
    # A power of two of them, so that few sizes are cached.
    weights = _powers(int(lengths.max() - 1).bit_length())[place]
    terms = hashing.bits("letter", points) * weights
    return hashing.bits("word", np.add.reduceat(terms, starts))


_SPACE, _LETTER, _ALONE = range(3)
_MAX_POINT = 0x20000  # Ideographs from here on.
# Thai and Lao, Burmese, Khmer, kana, ideographs.
_WITHOUT_SPACES = (
  (0x0E00, 0x0F00),
  (0x1000, 0x10A0),
  (0x1780, 0x1800),
  (0x3040, 0x3100),
  (0x3400, 0xA000),
  (0xF900, 0xFB00),
)


@functools.cache
def _categories() -> np.ndarray:
  """Returns the category of each code point up to _MAX_POINT, uint8."""
  categories = np.full(_MAX_POINT + 1, _SPACE, np.uint8)
  for point in range(_MAX_POINT):
    if unicodedata.category(chr(point))[0] in "LNM":
      categories[point] = _LETTER
  for first, end in _WITHOUT_SPACES:
    categories[first:end][categories[first:end] == _LETTER] = _ALONE
  categories[_MAX_POINT] = _ALONE
  return categories


@functools.lru_cache(maxsize=8)
def _powers(bits: int) -> np.ndarray:
  """Returns 2^bits powers of an odd number: weights of positions."""
  size = 1 << bits
  factors = np.full(size, 0x9E3779B97F4A7C15, np.uint64)
  factors[0] = 1
  with np.errstate(over="ignore"):
    return np.cumprod(factors, dtype=np.uint64)
