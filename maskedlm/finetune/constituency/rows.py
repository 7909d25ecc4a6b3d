"""Encoder rows of sentences and their trees.

A sentence that is longer than a row becomes several windows. Each word belongs
to the last window that contains it: its tag, and the spans that begin with it,
are learnt and predicted there. As windows begin half a row apart, every span of
up to half a row is whole there. A wider bracket than a row can't be found; the
brackets in it then stand side by side in the one around it.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.data.labelled.formats import trees
from maskedlm.data.labelled.formats.trees import Example
from maskedlm.data.labelled.windows import cut_windows
from maskedlm.data.labelled.words import word_encoder
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import unseen_labels
from maskedlm.finetune.common.text_pairs import text_row
from maskedlm.finetune.contract import Rows


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  label_ids: Mapping[str, int],
  tag_ids: Mapping[str, int],
  *,
  length: int,
) -> Rows:
  """Returns the rows of sentences: [CLS] subwords [SEP], one per window.

  Rows.tokens has, in addition to the usual two, arrays whose last axis is the
  row's words, followed by zeros, as there are never more words than tokens l:
    word_begins, word_ends [l]: the place of each word's first and last token.
    word_kept [l]: 1 for the words that belong to the row.
    word_tags [l]: their tags; UNSEEN for one that has no id.
    gold_begins, gold_widths, gold_labels [2, l]: the labelled spans that begin
      with them: the first word in the row, words, label or UNSEEN. A tree over
      n words has at most 2n - 1.
  Rows.notes reports what is UNSEEN, and brackets that are whole in no row.
  Rows.values has first_word [n], the index of the row's first word in its
  sentence.
  """
  encode_words = word_encoder(tokenizer)
  capacity = length - 2
  names = ("word_begins", "word_ends", "word_kept", "word_tags")
  gold_names = ("gold_begins", "gold_widths", "gold_labels")
  tokens: dict[str, list[np.ndarray]] = {
    name: [] for name in ("input_ids", "token_type_ids", *names, *gold_names)
  }
  owners, first_words, cut, unseen = [], [], [], []
  wide = total = 0
  for index, example in enumerate(examples):
    word_ids = encode_words([trees.plain_word(word) for word in example.words])
    longest = max(map(len, word_ids), default=0)
    if longest > capacity:  # A word that no row holds.
      cut.append(longest + 2)
    word_ids = [ids[:capacity] for ids in word_ids]
    sizes = np.array([len(ids) for ids in word_ids], np.int64)
    tags = _tag_ids(example, tag_ids)
    spans = _labelled_spans(example, label_ids)
    unseen += _unseen(example, label_ids, tag_ids)
    total += len(spans)
    wide += len(spans)  # Less those that are found in a row below.
    windows = cut_windows(sizes, capacity)
    stops = [*(window.begin for window in windows[1:]), len(sizes)]
    for window, stop in zip(windows, stops, strict=True):
      inside = slice(window.begin, window.end)
      count, kept = window.end - window.begin, stop - window.begin
      ids = text_row(tokenizer, *word_ids[inside])
      begins, ends, is_kept, word_tags = np.zeros((4, len(ids)), np.int32)
      ends[:count] = np.cumsum(sizes[inside])
      begins[:count] = ends[:count] + 1 - sizes[inside]
      is_kept[:kept] = 1
      word_tags[:kept] = tags[window.begin : stop]
      gold = np.zeros((3, 2 * len(ids)), np.int32)
      first, last = np.searchsorted(spans[:, 0], [window.begin, stop])
      own = spans[first:last]
      own = own[own[:, 1] <= window.end]
      wide -= len(own)
      gold[:, : len(own)] = (
        own[:, 0] - window.begin,
        own[:, 1] - own[:, 0],
        own[:, 2],
      )
      tokens["input_ids"].append(ids)
      tokens["token_type_ids"].append(np.zeros(len(ids), np.int32))
      for name, values in zip(
        names, (begins, ends, is_kept, word_tags), strict=True
      ):
        tokens[name].append(values)
      for name, values in zip(gold_names, gold, strict=True):
        tokens[name].append(values.reshape(2, len(ids)))
      owners.append(index)
      first_words.append(window.begin)
  too_wide = (
    f"{wide:,} of {counted(total, 'labelled span')} are whole in no row "
    f"of {length} tokens; they can be neither learnt nor predicted; a larger "
    "data.length (beside a checkpoint, --length) holds more"
  )
  return Rows(
    tokens=tokens,
    values={"first_word": np.array(first_words, np.int32)},
    example=np.array(owners, np.int64),
    cut=cut,
    notes=(*unseen_labels.unseen_notes(unseen), *[too_wide] * (wide > 0)),
  )


def _labelled_spans(
  example: Example, label_ids: Mapping[str, int]
) -> np.ndarray:
  """Returns (begin, end, label) of the labelled spans, [n, 3], by begin."""
  chains = trees.join_chains(example.brackets or ())
  spans = sorted(
    (*span, label_ids.get(chain, unseen_labels.UNSEEN))
    for span, chain in chains.items()
  )
  return np.array(spans, np.int64).reshape(-1, 3)


def _unseen(
  example: Example, label_ids: Mapping[str, int], tag_ids: Mapping[str, int]
) -> list[tuple[str, str]]:
  """Returns the (tag or chain, FILE:LINE) that have no id."""
  tags = enumerate(example.tags or ())
  chains = trees.join_chains(example.brackets or ()).items()
  found = [(i, tag) for i, tag in tags if tag not in tag_ids]
  found += [(span[0], x) for span, x in chains if x not in label_ids]
  return [(x, f"{example.file}:{example.lines[i]}") for i, x in found]


def _tag_ids(example: Example, tag_ids: Mapping[str, int]) -> np.ndarray:
  """Returns the tags' ids [n] int32; zeros if there are no tags."""
  if example.tags is None:
    return np.zeros(len(example.words), np.int32)
  ids = [tag_ids.get(tag, unseen_labels.UNSEEN) for tag in example.tags]
  return np.array(ids, np.int32)
