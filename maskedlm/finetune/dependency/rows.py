"""Encoder rows of sentences and their trees.

A sentence that is longer than a row becomes several windows. Each word belongs
to the one in which it has the most context: its head is looked for there, among
all of the window's words.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.data.labelled.formats.conllu import Example
from maskedlm.data.labelled.windows import cut_windows
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common.labels import (
  UNSEEN,
  Gold,
  label_ids,
  unseen_notes,
)
from maskedlm.finetune.common.word_rows import (
  WordWindow,
  word_places,
  word_rows,
)
from maskedlm.finetune.contract import Rows


def _arcs(example: Example) -> list[tuple[int, str, str]]:
  """Returns (head, label, FILE:LINE) of each word; [] without a tree."""
  if example.heads is None or example.labels is None:
    return []
  places = word_places(example)
  return list(zip(example.heads, example.labels, places, strict=True))


def _labels(example: Example) -> list[tuple[str, str]]:
  """Returns (label, FILE:LINE) of each arc between words."""
  return [(label, place) for head, label, place in _arcs(example) if head]


GOLD = Gold("heads", "HEAD in CoNLL-U, or 'head' in JSON", _labels)


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  ids: Mapping[tuple[bool, str], int],
  *,
  length: int,
) -> Rows:
  """Returns the rows of sentences: [CLS] subwords [SEP], one per window.

  Rows.tokens has, in addition to the usual two, arrays of the row's words,
  followed by zeros, as there are never more words than tokens l:
    word_starts [l]: the place of each word's first token.
    word_kept [l]: 1 for the words that belong to the row.
    word_heads [l]: 1 + the head's index in the row, 0 for the root; UNSEEN if
      the head is in none of the row's words.
    word_labels [l]: the label's id; UNSEEN if it has none, or the head is.
  Rows.values has first_word [n], the index of the row's first word in its
  sentence.

  Args:
    ids: (whether the head is the root, label) -> id.
    length: the largest number of tokens in a row.
  """
  trees = [_tree_ids(example, ids) for example in examples]

  def targets(index: int, w: WordWindow):
    heads, labels = (x[w.keep_begin : w.keep_end] for x in trees[index])
    is_far = (heads > 0) & ((heads <= w.begin) | (heads > w.end))
    arrays = np.zeros((2, w.end - w.begin), np.int32)
    arrays[:, w.kept] = np.where(heads > 0, heads - w.begin, 0), labels
    arrays[:, w.kept][:, is_far] = UNSEEN
    by_token = {
      "word_starts": w.first,
      "word_kept": w.is_kept(),
      "word_heads": arrays[0],
      "word_labels": arrays[1],
    }
    yield by_token, {"first_word": w.begin}

  rows = word_rows(
    [example.words for example in examples],
    tokenizer,
    length=length,
    windows=cut_windows,
    targets=targets,
  )
  unseen = [
    (label, place)
    for example in examples
    for head, label, place in _arcs(example)
    if (head == 0, label) not in ids
  ]
  heads = rows.tokens["word_heads"]
  far = sum(int(np.sum(x == UNSEEN)) for x in heads)
  total = sum(len(example.words) for example in examples)
  too_far = (
    f"{far:,} of {counted(total, 'word')} have their head in no row of "
    f"{length} tokens; they can be neither learnt nor predicted; a larger "
    "data.length (beside a checkpoint, --length) holds more"
  )
  return rows._replace(notes=(*unseen_notes(unseen), *[too_far] * (far > 0)))


def _tree_ids(
  example: Example, ids: Mapping[tuple[bool, str], int]
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the heads, from 1, and the labels' ids; zeros without a tree."""
  if example.heads is None:
    zeros = np.zeros(len(example.words), np.int32)
    return zeros, zeros
  arcs = [(head == 0, label) for head, label, _ in _arcs(example)]
  return np.array(example.heads, np.int32), label_ids(arcs, ids)
