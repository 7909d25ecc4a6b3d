"""Metrics of labelled spans: exact (begin, end, label), over all sentences.

`evaluate_reach` measures which gold spans no decoding could have found.
"""

from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.data.labelled.bio import Entity
from maskedlm.finetune.common import entity_metrics

Spans = Sequence[Sequence[Entity]]  # One sequence per sentence.


def count_spans(
  gold: Spans, predicted: Spans
) -> dict[str, entity_metrics.MatchCounts]:
  """Returns the counts of each label, sorted by label."""
  return entity_metrics.count_entities(gold, predicted, lambda spans: spans)


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
  return entity_metrics.sum_counts(count_spans(gold, predicted)).scores()


def evaluate_inner_spans(gold: Spans, predicted: Spans) -> dict[str, float]:
  """Returns evaluate_spans of spans that lie within others: inner_f1, ..."""
  scores = evaluate_spans(
    [inner_spans(s) for s in gold], [inner_spans(s) for s in predicted]
  )
  return {f"inner_{name}": value for name, value in scores.items()}


def evaluate_reach(
  gold: Spans,
  sizes: Sequence[Sequence[int]],
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
  total = unknown = wide = second = 0
  for spans, word_sizes in zip(gold, sizes, strict=True):
    places = set()
    for span in spans:
      total += 1
      place = span.begin, span.end
      if span.type not in labels:
        unknown += 1
        continue
      if span.end - span.begin > max_words or (
        sum(word_sizes[span.begin : span.end]) > capacity
      ):
        wide += 1
      elif place in places:
        second += 1
      places.add(place)
  total = max(total, 1)
  return {
    "reachable": 1 - (unknown + wide + second) / total,
    "unknown_label": unknown / total,
    "too_wide": wide / total,
    "second_label": second / total,
  }


def format_report(gold: Spans, predicted: Spans) -> str:
  """Returns tables of precision, recall and F1 by label, width and nesting."""
  tables = [entity_metrics.format_table(count_spans(gold, predicted), "label")]
  by_width = count_spans(_by_width(gold), _by_width(predicted))
  tables.append(entity_metrics.format_table(by_width, "words"))
  nested = [[inner_spans(s) for s in spans] for spans in (gold, predicted)]
  if any(map(any, nested)):
    tables.append(
      entity_metrics.format_table(count_spans(*nested), "within others")
    )
  return "\n".join(tables)


class _SpanByWidth(NamedTuple):
  """A span that is counted by its width; its label still distinguishes it."""

  type: str
  span: Entity


def _by_width(spans: Spans) -> list[list[_SpanByWidth]]:
  bounds = ((1, "1"), (2, "2"), (4, "3-4"), (8, "5-8"), (1 << 30, "9-"))

  def name(span: Entity) -> str:
    return next(n for most, n in bounds if span.end - span.begin <= most)

  return [[_SpanByWidth(name(s), s) for s in sentence] for sentence in spans]
