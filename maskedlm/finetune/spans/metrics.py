"""Metrics of labelled spans: exact (begin, end, label), over all sentences.

`evaluate_reach` measures which gold spans no decoding could have found.
"""

import collections
from collections.abc import Sequence

import numpy as np

from maskedlm.data.labelled.bio import Entity
from maskedlm.finetune.common import entity_metrics

Spans = Sequence[Sequence[Entity]]  # One sequence per sentence.


def inner_spans(spans: Sequence[Entity]) -> list[Entity]:
  """Returns the spans that lie within another."""
  return [
    span
    for span in spans
    if any(
      other.begin <= span.begin
      and span.end <= other.end
      and (other.begin, other.end) != (span.begin, span.end)
      for other in spans
    )
  ]


def evaluate_spans(gold: Spans, predicted: Spans) -> dict[str, float]:
  """Returns f1, precision and recall, micro-averaged, as fractions."""
  counts = entity_metrics.count_entities(gold, predicted)
  return entity_metrics.sum_counts(counts).scores()


def evaluate_inner_spans(gold: Spans, predicted: Spans) -> dict[str, float]:
  """Returns evaluate_spans of spans that lie within others: inner_f1, ..."""
  scores = evaluate_spans(
    [inner_spans(s) for s in gold], [inner_spans(s) for s in predicted]
  )
  return {f"inner_{name}": value for name, value in scores.items()}


def evaluate_reach(
  gold: Spans,
  sizes: Sequence[Sequence[int] | np.ndarray],
  *,
  labels: Sequence[str],
  max_words: int,
  capacity: int,
) -> dict[str, float]:
  """Returns the share of gold spans that can be found, and why others cannot.

  Args:
    gold: the spans of each sentence, outer layers first.
    sizes: the number of tokens of each word of each sentence.
    labels: the model's labels.
    max_words: the width of the widest span that is scored.
    capacity: the largest number of tokens in a row, without special tokens.

  Returns:
    Shares of the gold spans: reachable, unknown_label (not in training),
    too_wide (more than max_words, or than a row holds) and second_label (the
    same words have another label).
  """
  counts = collections.Counter[str]()
  for spans, word_sizes in zip(gold, sizes, strict=True):
    places = set()
    for label, begin, end in spans:
      counts["total"] += 1
      if label not in labels:
        counts["unknown_label"] += 1
        continue
      if end - begin > max_words or sum(word_sizes[begin:end]) > capacity:
        counts["too_wide"] += 1
      elif (begin, end) in places:
        counts["second_label"] += 1
      places.add((begin, end))
  total = max(counts.pop("total", 0), 1)
  names = ("unknown_label", "too_wide", "second_label")
  return {
    "reachable": 1 - counts.total() / total,
    **{name: counts[name] / total for name in names},
  }


def format_report(gold: Spans, predicted: Spans) -> str:
  """Returns tables of precision, recall and F1 by label, width and nesting."""
  parts = {
    "label": (gold, predicted),
    "words": (_by_width(gold), _by_width(predicted)),
  }
  nested = [[inner_spans(s) for s in spans] for spans in (gold, predicted)]
  if any(map(any, nested)):
    parts["within others"] = (nested[0], nested[1])
  return "\n".join(
    entity_metrics.format_table(entity_metrics.count_entities(*pair), name)
    for name, pair in parts.items()
  )


def _by_width(spans: Spans) -> list[list[tuple[str, Entity]]]:
  """Returns each span with the range of its width, by which it is counted."""
  bounds = ((1, "1"), (2, "2"), (4, "3-4"), (8, "5-8"), (1 << 30, "9-"))

  def name(span: Entity) -> str:
    return next(n for most, n in bounds if span.end - span.begin <= most)

  return [[(name(s), s) for s in sentence] for sentence in spans]
