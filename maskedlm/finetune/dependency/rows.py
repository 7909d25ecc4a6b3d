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
from maskedlm.data.labelled.words import word_encoder
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import unseen_labels
from maskedlm.finetune.common.text_pairs import text_row
from maskedlm.finetune.contract import Rows


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  label_ids: Mapping[tuple[bool, str], int],
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
    examples: the sentences.
    tokenizer: the encoder's.
    label_ids: (whether the head is the root, label) -> id.
    length: the largest number of tokens in a row.
  """
  encode_words = word_encoder(tokenizer)
  capacity = length - 2
  names = ("word_starts", "word_kept", "word_heads", "word_labels")
  tokens: dict[str, list[np.ndarray]] = {
    name: [] for name in ("input_ids", "token_type_ids", *names)
  }
  owners, first_words, cut, unseen = [], [], [], []
  far = total = 0
  for index, example in enumerate(examples):
    word_ids = encode_words(example.words)
    longest = max(map(len, word_ids))
    if longest > capacity:  # A word that no row holds.
      cut.append(longest + 2)
    word_ids = [ids[:capacity] for ids in word_ids]
    sizes = np.array([len(ids) for ids in word_ids], np.int64)
    heads, labels = _tree_ids(example, label_ids)
    unseen += [
      (example.labels[i], f"{example.file}:{example.lines[i]}")
      for i in np.flatnonzero(labels == unseen_labels.UNSEEN)
    ]
    total += len(sizes)
    for window in cut_windows(sizes, capacity):
      inside = slice(window.begin, window.end)
      kept = slice(window.keep_begin, window.keep_end)
      own = slice(kept.start - window.begin, kept.stop - window.begin)
      ids = text_row(tokenizer, *word_ids[inside])
      made = np.zeros((len(names), len(ids)), np.int32)
      starts, is_kept, own_heads, own_labels = made
      starts[: window.end - window.begin] = (
        1 + np.cumsum(sizes[inside]) - sizes[inside]
      )
      is_kept[own] = 1
      head, label = heads[kept], labels[kept]
      is_far = (head > 0) & ((head <= window.begin) | (head > window.end))
      far += int(is_far.sum())
      own_heads[own] = np.where(head > 0, head - window.begin, 0)
      own_labels[own] = label
      for values in (own_heads, own_labels):
        values[own][is_far] = unseen_labels.UNSEEN
      tokens["input_ids"].append(ids)
      tokens["token_type_ids"].append(np.zeros(len(ids), np.int32))
      for name, values in zip(names, made, strict=True):
        tokens[name].append(values)
      owners.append(index)
      first_words.append(window.begin)
  too_far = (
    f"{far:,} of {counted(total, 'word')} have their head in no row of "
    f"{length} tokens; they can be neither learnt nor predicted; a larger "
    "data.length (beside a checkpoint, --length) holds more"
  )
  return Rows(
    tokens=tokens,
    values={"first_word": np.array(first_words, np.int32)},
    example=np.array(owners, np.int64),
    cut=cut,
    notes=(*unseen_labels.unseen_notes(unseen), *[too_far] * (far > 0)),
  )


def _tree_ids(
  example: Example, label_ids: Mapping[tuple[bool, str], int]
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the heads, from 1, and the labels' ids; zeros without a tree."""
  if example.heads is None:
    return np.zeros((2, len(example.words)), np.int32)
  labels = [
    label_ids.get((head == 0, label), unseen_labels.UNSEEN)
    for head, label in zip(example.heads, example.labels, strict=True)
  ]
  return np.array(example.heads, np.int32), np.array(labels, np.int32)
