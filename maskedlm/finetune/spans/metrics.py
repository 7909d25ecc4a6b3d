"""Metrics of labelled spans: exact (begin, end, label), over all sentences.

Beside F1 stands what no decoding could have found: `reachable`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.finetune.common import entity_metrics
from maskedlm.finetune.common.bio import Entity

Spans = Sequence[Sequence[Entity]]  # Of each sentence.


def count_spans(
  gold: Spans, predicted: Spans
) -> dict[str, entity_metrics.MatchCounts]:
  """label -> Counts, sorted by label."""
  return entity_metrics.count_entities(gold, predicted, lambda spans: spans)


def inner_spans(spans: Sequence[Entity]) -> list[Entity]:
  """Those that lie within another."""
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
  """f1, precision and recall, micro-averaged; fractions."""
  found = entity_metrics.sum_counts(count_spans(gold, predicted))
  return {"f1": found.f1, "precision": found.precision, "recall": found.recall}


def evaluate_inner_spans(gold: Spans, predicted: Spans) -> dict[str, float]:
  """The same of spans that lie within others alone: inner_f1, ..."""
  made = evaluate_spans(
    [inner_spans(s) for s in gold], [inner_spans(s) for s in predicted]
  )
  return {f"inner_{name}": value for name, value in made.items()}


def evaluate_reach(
  gold: Spans,
  sizes: Sequence[Sequence[int]],
  *,
  labels: Sequence[str],
  max_words: int,
  capacity: int,
) -> dict[str, float]:
  """What limits cost: shares of the gold spans.

  Args:
    gold: of each sentence, outer layers first.
    sizes: tokens of each word of each sentence.
    labels: those that the model has.
    max_words: the widest span that is scored.
    capacity: the most tokens of a row.

  Returns:
    reachable, and why the others are not: unknown_label (training had none),
    too_wide (more than max_words, or than a row holds) and second_label (of
    words that have one already).
  """
  total = unknown = wide = second = 0
  for spans, of_words in zip(gold, sizes, strict=True):
    places = set()
    for span in spans:
      total += 1
      place = span.begin, span.end
      if span.type not in labels:
        unknown += 1
        continue
      if span.end - span.begin > max_words or (
        sum(of_words[span.begin : span.end]) > capacity
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
  """Precision, recall and F1 by label, by width, and of spans within others."""
  parts = [entity_metrics.format_table(count_spans(gold, predicted), "label")]
  by_width = count_spans(_by_width(gold), _by_width(predicted))
  parts.append(entity_metrics.format_table(by_width, "words"))
  within = [[inner_spans(s) for s in spans] for spans in (gold, predicted)]
  if any(map(any, within)):
    parts.append(
      entity_metrics.format_table(count_spans(*within), "within others")
    )
  return "\n".join(parts)


class _Wide(NamedTuple):
  """A span, told apart by its label as well, and counted by its width."""

  type: str
  span: Entity


def _by_width(spans: Spans) -> list[list[_Wide]]:
  bounds = ((1, "1"), (2, "2"), (4, "3-4"), (8, "5-8"), (1 << 30, "9-"))

  def name(span: Entity) -> str:
    return next(n for most, n in bounds if span.end - span.begin <= most)

  return [[_Wide(name(s), s) for s in of_one] for of_one in spans]
