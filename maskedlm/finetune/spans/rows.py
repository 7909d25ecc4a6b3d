"""Encoder rows of sentences with labelled spans, each span whole in one row.

A sentence that is longer than a row becomes several rows. They overlap enough
for every span to be whole in one of them, and each span is scored only in the
row that keeps its first word.
"""

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.data.labelled.formats.layers import Example
from maskedlm.data.labelled.windows import cut_span_windows
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common.labels import UNSEEN, Gold, ids_of
from maskedlm.finetune.common.word_rows import (
  WordWindow,
  word_places,
  word_rows,
)
from maskedlm.finetune.contract import Rows


def _labels(example: Example) -> list[tuple[str, str]]:
  """Returns (label, FILE:LINE) of each span."""
  places = word_places(example)
  return [(span.type, places[span.begin]) for span in example.spans or ()]


GOLD = Gold("spans", "a column of BIO tags", _labels, thing="entity")


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
  ids = ids_of(labels)
  scored = [_scored_spans(example, ids, max_words) for example in examples]

  def targets(index: int, w: WordWindow):
    span_labels = np.zeros((max_words, w.end - w.begin), np.int32)
    for begin, end, label in scored[index]:
      if w.begin <= begin and end <= w.end:
        span_labels[end - begin - 1, begin - w.begin] = label
    by_token = {
      "word_begins": w.first,
      "word_ends": w.last,
      "word_kept": w.is_kept(),
      "span_labels": span_labels,
    }
    yield by_token, {"first_word": w.begin}

  rows = word_rows(
    [example.words for example in examples],
    tokenizer,
    length=length,
    windows=functools.partial(
      cut_span_windows, overlap=max_words - 1, stride=stride
    ),
    targets=targets,
  )
  widths = [s.end - s.begin for x in examples for s in x.spans or ()]
  wide = sum(width > max_words for width in widths)
  too_wide = (
    f"{wide:,} of {counted(len(widths), 'span')} have more words than "
    f"task.max_span_words={max_words}; they can be neither learnt nor "
    "predicted; raise it"
  )
  return rows._replace(
    notes=(*GOLD.unseen_notes(examples, ids), *[too_wide] * (wide > 0)),
    lost=too_wide if 0 < wide == len(widths) else "",
  )


def _scored_spans(
  example: Example, ids: Mapping[str, int], max_words: int
) -> list[tuple[int, int, int]]:
  """Returns (begin, end, label) of each span of at most max_words words."""
  places: dict[tuple[int, int], int] = {}
  for span in example.spans or ():
    place = span.begin, span.end
    # Takes the first of several labels that the model has.
    if places.get(place, UNSEEN) == UNSEEN:
      places[place] = ids.get(span.type, UNSEEN)
  return [
    (begin, end, label)
    for (begin, end), label in places.items()
    if end - begin <= max_words
  ]
