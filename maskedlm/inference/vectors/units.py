"""Defines the units that get a vector: tokens, words or the whole text.

A unit is a run of tokens with the characters that it stands for. Each token of
a word belongs to that word only, so that pooling neither loses nor counts a
token twice.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.data.labelled.text_lines import Text
from maskedlm.data.labelled.words import split_words, word_encoder
from maskedlm.data.tokenizers.tokenizer import Tokenizer

NO_UNIT = -1  # The unit of a token outside all units.


class TextTokens(NamedTuple):
  """The n tokens of a text, without special tokens."""

  ids: np.ndarray  # [n] int32.
  offsets: np.ndarray  # [n, 2]: characters in Text.text.
  words: Callable[[], tuple[np.ndarray, np.ndarray]]  # See find_words.


class TextUnits(NamedTuple):
  """The u units of a text and the unit of each of its n tokens."""

  of_tokens: np.ndarray  # [n]: 0..u-1 in ascending order, or NO_UNIT.
  offsets: np.ndarray  # [u, 2]: characters in Text.text.
  ids: np.ndarray  # [u] int32: the id if units are tokens, else NO_UNIT.


def make_tokeniser(tokenizer: Tokenizer) -> Callable[[Text], TextTokens]:
  """Returns a function from a text to its tokens.

  Given words are tokenised one by one (data/labelled/words.py), and all tokens
  of a word have the offsets of the word.
  """
  find_tokens = word_encoder(tokenizer)

  def tokenise(text: Text) -> TextTokens:
    if text.words is not None:
      return _tokens_of_words(text.words, find_tokens(text.words))
    encoding = tokenizer.encode(text.text)
    return TextTokens(
      ids=encoding.ids,
      offsets=encoding.offsets,
      words=lambda: find_words(split_words(text.text), encoding.offsets),
    )

  return tokenise


def _tokens_of_words(
  words: Sequence[str], ids_of_words: Sequence[np.ndarray]
) -> TextTokens:
  sizes = np.array([len(ids) for ids in ids_of_words], np.int64)
  lengths = np.array([len(word) for word in words], np.int64)
  begins = np.cumsum(lengths + 1) - lengths - 1  # Spaces are between.
  offsets = np.stack([begins, begins + lengths], axis=1)
  index = np.repeat(np.arange(len(words)), sizes)
  return TextTokens(
    ids=np.concatenate([*ids_of_words, []]).astype(np.int32),
    offsets=offsets[index],
    words=lambda: (index, offsets),
  )


def find_words(
  spans: Sequence[tuple[int, int]], offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Assigns tokens to words by their characters.

  Words that share a token are merged; words without a token (control
  characters) are dropped.

  Args:
    spans: [w], (begin, end) of the words, in order.
    offsets: [n, 2], the characters of the tokens.

  Returns:
    ([n], the word of each token or NO_UNIT; [v, 2], the words' characters).
  """
  begins, ends = np.array(spans, np.int64).reshape(-1, 2).T
  # The first and the last word that share a character with each token.
  first = np.searchsorted(ends, offsets[:, 0], "right")
  last = np.searchsorted(begins, offsets[:, 1], "left") - 1
  has_word = first <= last
  # +1 at first, -1 at last: above 0 where a token reaches into the next word.
  reach = np.zeros(len(begins) + 1, np.int64)
  np.add.at(reach, first[has_word], 1)
  np.add.at(reach, last[has_word], -1)
  joined = np.cumsum(reach)[:-1] > 0
  word = np.cumsum(~np.concatenate([[False], joined])[:-1]) - 1  # [w]
  of_tokens = np.full(len(offsets), NO_UNIT, np.int64)
  of_tokens[has_word] = word[first[has_word]]
  # Renumber the words that have a token.
  used, of_used = np.unique(of_tokens[has_word], return_inverse=True)
  of_tokens[has_word] = of_used
  starts = np.searchsorted(word, used)
  stops = np.searchsorted(word, used, "right") - 1
  return of_tokens, np.stack([begins[starts], ends[stops]], axis=1)


def token_units(text: Text, tokens: TextTokens) -> TextUnits:
  """Returns every token as a unit."""
  del text
  return TextUnits(np.arange(len(tokens.ids)), tokens.offsets, tokens.ids)


def word_units(text: Text, tokens: TextTokens) -> TextUnits:
  """Returns the given words, or those of data/labelled/words.py, as units."""
  del text
  of_tokens, offsets = tokens.words()
  return TextUnits(of_tokens, offsets, np.full(len(offsets), NO_UNIT, np.int32))


def sentence_units(text: Text, tokens: TextTokens) -> TextUnits:
  """Returns the whole text as one unit."""
  return TextUnits(
    of_tokens=np.zeros(len(tokens.ids), np.int64),
    offsets=np.array([[0, len(text.text)]]),
    ids=np.array([NO_UNIT], np.int32),
  )


UNITS = {"token": token_units, "word": word_units, "sentence": sentence_units}
