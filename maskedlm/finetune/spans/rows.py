"""Encoder rows of sentences with labelled spans, each span whole in one row.

A sentence that is longer than a row becomes several rows. They overlap enough
for every span to be whole in one of them, and each span is scored only in the
row that keeps its first word.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.data.labelled.formats.layers import Example
from maskedlm.data.labelled.windows import cut_span_windows
from maskedlm.data.labelled.words import word_encoder
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import unseen_labels
from maskedlm.finetune.common.text_pairs import text_row
from maskedlm.finetune.contract import Rows


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  labels: Sequence[str],
  *,
  length: int,
  max_words: int,
  stride: int,
) -> Rows:
  """Returns the rows of sentences: [CLS] subwords [SEP], one per window.

  Rows.tokens has, in addition to the usual two, arrays whose last axis is the
  row's words, followed by zeros, as there are never more words than tokens l:
    word_begins, word_ends [l]: the place of each word's first and last token.
    word_kept [l]: 1 for the words whose spans are scored in this row.
    span_labels [max_words, l]: at [i, j], the label of the span of i + 1 words
      that begins with word j; the first known one of several, else UNSEEN,
      which Rows.notes reports.
  Rows.values has first_word [n], the index of the row's first word in its
  sentence.
  """
  encode_words = word_encoder(tokenizer)
  label_ids = {label: i for i, label in enumerate(labels)}
  capacity = length - 2
  tokens: dict[str, list[np.ndarray]] = {
    "input_ids": [],
    "token_type_ids": [],
    "word_begins": [],
    "word_ends": [],
    "word_kept": [],
    "span_labels": [],
  }
  owners, first_words, cut, unseen = [], [], [], []
  wide = total = 0
  for index, example in enumerate(examples):
    word_ids = encode_words(example.words)
    longest = max(map(len, word_ids), default=0)
    if longest > capacity:  # A word that no row holds.
      cut.append(longest + 2)
    word_ids = [ids[:capacity] for ids in word_ids]
    sizes = np.array([len(ids) for ids in word_ids], np.int64)
    spans = _scored_spans(example, label_ids, max_words)
    path = example.where.rpartition(":")[0]
    total += len(example.spans or ())
    wide += sum(s.end - s.begin > max_words for s in example.spans or ())
    unseen += [
      (span.type, f"{path}:{example.lines[span.begin]}")
      for span in example.spans or ()
      if span.type not in label_ids
    ]
    for window in cut_span_windows(
      sizes, capacity, overlap=max_words - 1, stride=stride
    ):
      inside = slice(window.begin, window.end)
      count = window.end - window.begin
      ids = text_row(tokenizer, *word_ids[inside])
      begins, ends, kept = np.zeros((3, len(ids)), np.int32)
      ends[:count] = np.cumsum(sizes[inside])
      begins[:count] = ends[:count] + 1 - sizes[inside]
      kept[
        window.keep_begin - window.begin : window.keep_end - window.begin
      ] = 1
      span_labels = np.zeros((max_words, len(ids)), np.int32)
      for begin, end, label in spans:
        if window.begin <= begin and end <= window.end:
          span_labels[end - begin - 1, begin - window.begin] = label
      tokens["input_ids"].append(ids)
      tokens["token_type_ids"].append(np.zeros(len(ids), np.int32))
      tokens["word_begins"].append(begins)
      tokens["word_ends"].append(ends)
      tokens["word_kept"].append(kept)
      tokens["span_labels"].append(span_labels)
      owners.append(index)
      first_words.append(window.begin)
  too_wide = (
    f"{wide:,} of {counted(total, 'span')} have more words than "
    f"task.max_span_words={max_words}; they can be neither learnt nor "
    "predicted; raise it"
  )
  return Rows(
    tokens=tokens,
    values={"first_word": np.array(first_words, np.int32)},
    example=np.array(owners, np.int64),
    cut=cut,
    notes=(*unseen_labels.unseen_notes(unseen), *[too_wide] * (wide > 0)),
    lost=too_wide if 0 < wide == total else "",
  )


def _scored_spans(
  example: Example, label_ids: Mapping[str, int], max_words: int
) -> list[tuple[int, int, int]]:
  """Returns (begin, end, label) of each span of at most max_words words."""
  places: dict[tuple[int, int], int] = {}
  for span in example.spans or ():
    place = span.begin, span.end
    # Takes the first of several labels that the model has.
    if places.get(place, unseen_labels.UNSEEN) == unseen_labels.UNSEEN:
      places[place] = label_ids.get(span.type, unseen_labels.UNSEEN)
  return [
    (begin, end, label)
    for (begin, end), label in places.items()
    if end - begin <= max_words
  ]
