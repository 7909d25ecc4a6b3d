"""Encoder rows of sentences whose words have tags.

A sentence that is longer than a row becomes several (data/labelled/windows.py).
All tasks that tag words use this module.
"""

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from maskedlm.data.labelled import windows
from maskedlm.data.labelled.formats.tags import Example
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common.labels import Gold, label_ids
from maskedlm.finetune.common.word_rows import (
  WordWindow,
  word_places,
  word_rows,
)
from maskedlm.finetune.contract import Rows


def _tags(example: Example) -> list[tuple[str, str]]:
  """Returns (tag, FILE:LINE) of each word whose tag is not O."""
  tags = zip(example.tags or (), word_places(example), strict=True)
  return [x for x in tags if x[0] != "O"]


GOLD = Gold("tags", "a column of tags", _tags)
ENTITIES = GOLD._replace(thing="entity")


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
    tag_ids: tag -> id.
    length: L, the largest number of tokens in a row.
    stride: tokens from one window to the next; 0 for half a row.
  """
  tags = [
    label_ids(example.tags or [None] * len(example.words), tag_ids)
    for example in examples
  ]

  def targets(index: int, w: WordWindow):
    count = w.keep_end - w.keep_begin
    words = np.zeros(w.end - w.begin, np.int32)
    words[w.kept] = 1 + np.arange(count)
    by_token = {
      "token_words": [0, *np.repeat(words, 1 + w.last - w.first)],
      "word_starts": w.first[w.kept],
      "word_tags": tags[index][w.keep_begin : w.keep_end],
    }
    is_end = w.keep_end == len(tags[index])
    yield by_token, {"begins": w.keep_begin == 0, "ends": is_end}

  rows = word_rows(
    [example.words for example in examples],
    tokenizer,
    length=length,
    windows=functools.partial(windows.cut_windows, stride=stride),
    targets=targets,
  )
  return rows._replace(notes=GOLD.unseen_notes(examples, tag_ids))
