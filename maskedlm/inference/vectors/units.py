"""What gets a vector: the tokens, the words or the whole of a text.

A unit is a run of tokens of its text, and knows which characters it stands
for. Every token of a word is the word's alone, so that pooling a word's
tokens loses none and counts none twice.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.data.labelled import words as words_lib
from maskedlm.data.labelled.text_lines import Text
from maskedlm.data.tokenizers.tokenizer import Tokenizer

NONE = -1  # The unit of a token that is of none.


class Tokens(NamedTuple):
  """The n tokens of a text, without specials."""

  ids: np.ndarray  # [n] int32.
  offsets: np.ndarray  # [n, 2]: their characters in Text.text.
  words: Callable[[], tuple[np.ndarray, np.ndarray]]  # See word_units.


class Units(NamedTuple):
  """The u units of a text, and which of its n tokens are whose."""

  of_tokens: np.ndarray  # [n]: 0..u-1 in growing order, or NONE.
  offsets: np.ndarray  # [u, 2]: their characters in Text.text.
  ids: np.ndarray  # [u] int32: of a token its id, else NONE.


def tokeniser(tokenizer: Tokenizer) -> Callable[[Text], Tokens]:
  """The function from a text to its tokens.

  Given words are tokenised each for itself (data/labelled/words.py): their tokens
  all have the characters of their word.
  """
  find_tokens = words_lib.tokens_of(tokenizer)

  def tokenise(text: Text) -> Tokens:
    if text.words is not None:
      return _of_words(text.words, find_tokens(text.words))
    encoding = tokenizer.encode(text.text)
    return Tokens(
      ids=encoding.ids,
      offsets=encoding.offsets,
      words=lambda: find_words(words_lib.split(text.text), encoding.offsets),
    )

  return tokenise


def _of_words(words: Sequence[str], of_words: Sequence[np.ndarray]) -> Tokens:
  sizes = np.array([len(ids) for ids in of_words], np.int64)
  lengths = np.array([len(word) for word in words], np.int64)
  begins = np.cumsum(lengths + 1) - lengths - 1  # Spaces are between.
  offsets = np.stack([begins, begins + lengths], axis=1)
  index = np.repeat(np.arange(len(words)), sizes)
  return Tokens(
    ids=np.concatenate([*of_words, []]).astype(np.int32),
    offsets=offsets[index],
    words=lambda: (index, offsets),
  )


def find_words(
  spans: Sequence[tuple[int, int]], offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Which word each token is of, where words are known by their characters.

  Words that a token reaches over are one; a word that no token stands for
  (control characters) is left out.

  Args:
    spans: [w] (begin, end) of the words, in order.
    offsets: [n, 2], those of the tokens.

  Returns:
    ([n], the word of each token or NONE; [v, 2], the characters of the words).
  """
  begins, ends = np.array(spans, np.int64).reshape(-1, 2).T
  # The first and the last word that a token has a character of.
  first = np.searchsorted(ends, offsets[:, 0], "right")
  last = np.searchsorted(begins, offsets[:, 1], "left") - 1
  real = first <= last
  # +1 at first, -1 at last: above 0 where a word goes on into the next one.
  reach = np.zeros(len(begins) + 1, np.int64)
  np.add.at(reach, first[real], 1)
  np.add.at(reach, last[real], -1)
  joined = np.cumsum(reach)[:-1] > 0
  word = np.cumsum(~np.concatenate([[False], joined])[:-1]) - 1  # [w]
  of_tokens = np.full(len(offsets), NONE, np.int64)
  of_tokens[real] = word[first[real]]
  # Number those that have a token.
  kept, of_real = np.unique(of_tokens[real], return_inverse=True)
  of_tokens[real] = of_real
  starts = np.searchsorted(word, kept)
  stops = np.searchsorted(word, kept, "right") - 1
  return of_tokens, np.stack([begins[starts], ends[stops]], axis=1)


def token_units(text: Text, tokens: Tokens) -> Units:
  """Each token."""
  del text
  return Units(np.arange(len(tokens.ids)), tokens.offsets, tokens.ids)


def word_units(text: Text, tokens: Tokens) -> Units:
  """The words that are given, or those of data/labelled/words.py."""
  del text
  of_tokens, offsets = tokens.words()
  return Units(of_tokens, offsets, np.full(len(offsets), NONE, np.int32))


def sentence_units(text: Text, tokens: Tokens) -> Units:
  """The text as a whole."""
  return Units(
    of_tokens=np.zeros(len(tokens.ids), np.int64),
    offsets=np.array([[0, len(text.text)]]),
    ids=np.array([NONE], np.int32),
  )


UNITS = {"token": token_units, "word": word_units, "sentence": sentence_units}
