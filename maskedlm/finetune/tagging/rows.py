"""Encoder rows of sentences whose words have tags.

A sentence that is longer than a row becomes several (data/labelled/windows.py).
All tasks that tag words use this module.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from maskedlm.data.labelled import windows
from maskedlm.data.labelled.formats.tags import Example
from maskedlm.data.labelled.words import word_encoder
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import unseen_labels
from maskedlm.finetune.common.text_pairs import text_row
from maskedlm.finetune.contract import Rows


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  tag_ids: Mapping[str, int],
  *,
  length: int,
  stride: int,
) -> Rows:
  """Returns the rows of sentences: [CLS] subwords [SEP], one per window.

  A row's words are those whose tags are read from its window, so each word is
  in exactly one row. Rows.tokens has, in addition to the usual two:
    token_words [l]: 1 + the index of each token's word; 0 for other tokens.
    word_starts [l]: the place of each word's first token, then zeros; there are
      never more words than tokens.
    word_tags [l]: likewise, each word's tag; UNSEEN for a tag without an id,
      which Rows.notes reports.
  Rows.values has begins and ends [n]: 1 if the row has the first, or the last,
  word of its sentence.

  Args:
    examples: the sentences.
    tokenizer: the encoder's.
    tag_ids: tag -> id.
    length: L, the largest number of tokens in a row.
    stride: tokens from one window to the next; 0 for half a row.
  """
  encode_words = word_encoder(tokenizer)
  capacity = length - 2
  tokens: dict[str, list[np.ndarray]] = {
    "input_ids": [],
    "token_type_ids": [],
    "token_words": [],
    "word_starts": [],
    "word_tags": [],
  }
  owners, begins, ends, cut, unseen = [], [], [], [], []
  for index, example in enumerate(examples):
    word_ids = encode_words(example.words)
    sizes = np.array([len(ids) for ids in word_ids], np.int64)
    if np.any(sizes > capacity):  # Of a word that no row holds.
      cut.append(int(sizes.max()) + 2)
    word_ids = [ids[:capacity] for ids in word_ids]
    sizes = np.minimum(sizes, capacity)
    tags = _tag_ids(example, tag_ids)
    unseen += [
      (example.tags[i], f"{example.file}:{example.lines[i]}")
      for i in np.flatnonzero(tags == unseen_labels.UNSEEN)
    ]
    for window in windows.cut_windows(sizes, capacity, stride=stride):
      inside = slice(window.begin, window.end)
      ids = text_row(tokenizer, *word_ids[inside])
      starts = 1 + np.cumsum(sizes[inside]) - sizes[inside]
      kept = slice(
        window.keep_begin - window.begin, window.keep_end - window.begin
      )
      count = window.keep_end - window.keep_begin
      indices = np.zeros(window.end - window.begin, np.int32)
      indices[kept] = 1 + np.arange(count)
      token_words, word_starts, word_tags = np.zeros((3, len(ids)), np.int32)
      token_words[1:-1] = np.repeat(indices, sizes[inside])
      word_starts[:count] = starts[kept]
      word_tags[:count] = tags[window.keep_begin : window.keep_end]
      tokens["input_ids"].append(ids)
      tokens["token_type_ids"].append(np.zeros(len(ids), np.int32))
      tokens["token_words"].append(token_words)
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
    cut=cut,
    notes=unseen_labels.unseen_notes(unseen),
  )


def _tag_ids(example: Example, tag_ids: Mapping[str, int]) -> np.ndarray:
  """Returns the tags' ids [n] int32; zeros if there are no tags."""
  if example.tags is None:
    return np.zeros(len(example.words), np.int32)
  ids = [tag_ids.get(tag, unseen_labels.UNSEEN) for tag in example.tags]
  return np.array(ids, np.int32)
