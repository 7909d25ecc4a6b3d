"""Sentences whose words have tags -> rows of tokens: what a tagger reads.

A sentence that is longer than a row becomes several, as windows.py cuts it.
Shared by the kinds that tag words.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.data.labelled import windows
from maskedlm.data.labelled.words import word_encoder
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import unseen_labels
from maskedlm.finetune.common.text_pairs import text_row
from maskedlm.finetune.contract import Rows


class Example(NamedTuple):
  """A sentence."""

  words: tuple[str, ...]
  tags: tuple[str, ...] | None = None
  text: str | None = None  # None: the words, with spaces between.
  offsets: tuple[tuple[int, int], ...] = ()  # Of the words in text.
  lines: tuple[int, ...] = ()  # Of the words in their file.
  where: str = ""  # FILE:LINE of the first word.

  @property
  def file(self) -> str:
    """The file alone."""
    return self.where.rpartition(":")[0]


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  tag_ids: Mapping[str, int],
  *,
  length: int,
  stride: int,
) -> Rows:
  """The rows of sentences: [CLS] subwords [SEP], a window each.

  Rows.tokens beside the usual two: token_words [l] is 1 + the place among the
  row's words of the word that a token is of, 0 for a token of none; and, with
  a row's words on the last axis in place of its tokens (never more): the place
  of each word's first token, word_starts, and its tag, word_tags (UNKNOWN of
  one that has no id; Rows.notes says so). A row's words are those
  that are read off in its window: each is in one row.
  """
  find_tokens = word_encoder(tokenizer)
  capacity = length - 2
  tokens: dict[str, list[np.ndarray]] = {
    "input_ids": [],
    "token_type_ids": [],
    "token_words": [],
    "word_starts": [],
    "word_tags": [],
  }
  owners, begins, ends, truncated, odd = [], [], [], 0, []
  for index, example in enumerate(examples):
    of_words = find_tokens(example.words)
    sizes = np.array([len(ids) for ids in of_words], np.int64)
    truncated += bool(np.any(sizes > capacity))
    of_words = [ids[:capacity] for ids in of_words]
    sizes = np.minimum(sizes, capacity)
    tags = _tag_ids(example, tag_ids)
    odd += [
      (example.tags[i], f"{example.file}:{example.lines[i]}")
      for i in np.flatnonzero(tags == unseen_labels.UNSEEN)
    ]
    for window in windows.cut_windows(sizes, capacity, stride=stride):
      inside = slice(window.begin, window.end)
      ids = text_row(tokenizer, *of_words[inside])
      starts = 1 + np.cumsum(sizes[inside]) - sizes[inside]
      kept = slice(
        window.keep_begin - window.begin, window.keep_end - window.begin
      )
      count = window.keep_end - window.keep_begin
      slots = np.zeros(window.end - window.begin, np.int32)
      slots[kept] = 1 + np.arange(count)
      of_tokens, word_starts, word_tags = np.zeros((3, len(ids)), np.int32)
      of_tokens[1:-1] = np.repeat(slots, sizes[inside])
      word_starts[:count] = starts[kept]
      word_tags[:count] = tags[window.keep_begin : window.keep_end]
      tokens["input_ids"].append(ids)
      tokens["token_type_ids"].append(np.zeros(len(ids), np.int32))
      tokens["token_words"].append(of_tokens)
      tokens["word_starts"].append(word_starts)
      tokens["word_tags"].append(word_tags)
      owners.append(index)
      begins.append(window.keep_begin == 0)
      ends.append(window.keep_end == len(sizes))
  return Rows(
    tokens=tokens,
    values={
      "begins": np.array(begins, np.int32),
      "ends": np.array(ends, np.int32),
    },
    example=np.array(owners, np.int64),
    truncated=truncated,
    notes=unseen_labels.unseen_notes(odd),
  )


def _tag_ids(example: Example, tag_ids: Mapping[str, int]) -> np.ndarray:
  """[n] int32; zeros where there are no tags."""
  if example.tags is None:
    return np.zeros(len(example.words), np.int32)
  found = [tag_ids.get(tag, unseen_labels.UNSEEN) for tag in example.tags]
  return np.array(found, np.int32)
