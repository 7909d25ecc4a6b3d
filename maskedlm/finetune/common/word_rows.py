"""Encoder rows of sentences of words: [CLS] subwords [SEP], one per window.

All tasks that label words make their rows here. A sentence that is longer than
a row is cut into windows (data/labelled/windows.py), and the task says what is
to be learnt of the words of each.
"""

import collections
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.data.batches.text_pairs import text_row
from maskedlm.data.labelled.windows import Window
from maskedlm.data.labelled.words import word_encoder
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.contract import Example, Rows


class WordWindow(NamedTuple):
  """The words of a sentence that a row holds: begin to end - 1."""

  begin: int
  end: int
  # Of these, the words that belong to the row, as indices of the sentence.
  keep_begin: int
  keep_end: int
  first: np.ndarray  # [n] int64: the place in the row of each word's first
  last: np.ndarray  # and last token.

  @property
  def kept(self) -> slice:
    """The words that belong to the row, as indices of the window."""
    return slice(self.keep_begin - self.begin, self.keep_end - self.begin)

  def is_kept(self) -> np.ndarray:
    """Returns 1 for each word that belongs to the row, else 0, int32 [n]."""
    place = np.arange(self.begin, self.end)
    kept = (place >= self.keep_begin) & (place < self.keep_end)
    return kept.astype(np.int32)


class WordIds(NamedTuple):
  """The tokens of sentences, word by word; each word is cut to fit in a row."""

  ids: list[list[np.ndarray]]  # Of each sentence, each word's, int32 [n].
  sizes: list[np.ndarray]  # Of each sentence, the words' tokens, int64 [n].
  cut: list[int]  # Rows.cut: for each sentence with a word that was cut.


def encode_words(
  sentences: Iterable[Sequence[str]], tokenizer: Tokenizer, length: int
) -> WordIds:
  """Returns the tokens of sentences for rows of `length` tokens."""
  encode, capacity = word_encoder(tokenizer), length - 2
  encoded = WordIds([], [], [])
  for words in sentences:
    ids = encode(words)
    longest = max(map(len, ids), default=0)
    if longest > capacity:
      encoded.cut.append(longest + 2)
    encoded.ids.append([x[:capacity] for x in ids])
    encoded.sizes.append(np.array([len(x) for x in encoded.ids[-1]], np.int64))
  return encoded


# What is to be learnt of a row: (name -> array [..., m], m at most the row's
# tokens, padded with 0 to them; name -> one value or array for the row).
Targets = tuple[Mapping[str, Any], Mapping[str, Any]]


def word_rows(
  sentences: Sequence[Sequence[str]],
  tokenizer: Tokenizer,
  *,
  length: int,
  windows: Callable[[np.ndarray, int], Iterable[Window]],
  targets: Callable[[int, WordWindow], Iterable[Targets]],
) -> Rows:
  """Returns the rows of sentences.

  There are never more words than tokens, so Rows.tokens may hold values of
  words, followed by zeros.

  Args:
    sentences: the words of each.
    length: L, the largest number of tokens in a row.
    windows: (tokens of each word [n], the largest number of tokens) -> windows.
    targets: (sentence, window) -> what is to be learnt: a row for each.
  """
  encoded = encode_words(sentences, tokenizer, length)
  tokens: dict[str, list[np.ndarray]] = collections.defaultdict(list)
  values: dict[str, list] = collections.defaultdict(list)
  owners = []
  for index, sizes in enumerate(encoded.sizes):
    for window in windows(sizes, length - 2):
      inside = slice(window.begin, window.end)
      ids = text_row(tokenizer, *encoded.ids[index][inside])
      last = np.cumsum(sizes[inside])
      word_window = WordWindow(*window, last + 1 - sizes[inside], last)
      for by_token, by_row in targets(index, word_window):
        tokens["input_ids"].append(ids)
        tokens["token_type_ids"].append(0 * ids)
        for name, array in by_token.items():
          tokens[name].append(_padded(array, len(ids)))
        for name, value in by_row.items():
          values[name].append(value)
        owners.append(index)
  return Rows(
    tokens=tokens,
    values={name: np.array(x, np.int32) for name, x in values.items()},
    example=np.array(owners, np.int64),
    cut=encoded.cut,
  )


def word_places(example: Example) -> list[str]:
  """Returns FILE:LINE of each word, or of the sentence where lines are not."""
  if not example.lines:
    return [example.where] * len(example.words)
  path = example.where.rpartition(":")[0]
  return [f"{path}:{line}" for line in example.lines]


def _padded(array: Any, length: int) -> np.ndarray:
  array = np.asarray(array, np.int32)
  out = np.zeros((*array.shape[:-1], length), np.int32)
  out[..., : array.shape[-1]] = array
  return out
