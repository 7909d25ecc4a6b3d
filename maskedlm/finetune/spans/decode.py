"""Scored spans -> the spans that are there, and the threshold for it.

What is said of a span is a margin: the log-odds of its best label against NULL.
Above 0 that label is the argmax; a calibrated threshold in place of 0 trades
recall for precision (Jurafsky & Martin, section 11.5.2). Spans of a sentence
are taken from the largest margin on, each that agrees with those before it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.finetune.common.bio import Entity


class Candidate(NamedTuple):
  """A span and what is said of it."""

  margin: float
  span: Entity
  probability: float  # Of its label.


def row_candidates(
  of_row: Mapping[str, np.ndarray], labels: Sequence[str], first_word: int
) -> list[Candidate]:
  """What a model says of a row's spans, for the sentence that it is of.

  Args:
    of_row: margins [W] (-inf where there is no span), labels, begins, widths
      and probabilities, where begins are words of the row.
    labels: by number.
    first_word: of the row, its place in the sentence.
  """
  return [
    Candidate(margin, Entity(labels[label], begin, begin + width), share)
    for margin, label, begin, width, share in zip(
      of_row["margins"].tolist(),
      of_row["labels"].tolist(),
      (first_word + of_row["begins"]).tolist(),
      of_row["widths"].tolist(),
      of_row["probabilities"].tolist(),
      strict=True,
    )
    if margin > -math.inf
  ]


def without_overlaps(candidates: Iterable[Candidate]) -> list[Candidate]:
  """Those that share no word with a better one, the best first."""
  taken, chosen = 0, []  # A bit a word.
  for candidate in _ranked(candidates):
    _, begin, end = candidate.span
    words = (1 << end) - (1 << begin)
    if not taken & words:
      taken |= words
      chosen.append(candidate)
  return chosen


def without_crossings(candidates: Iterable[Candidate]) -> list[Candidate]:
  """Those that lie within, around or outside of each better one.

  The best first; no two of them are the same words.
  """
  # Border between words -> the furthest end of the spans that begin there, and
  # the furthest begin of those that end there.
  furthest_end: dict[int, int] = {}
  furthest_begin: dict[int, int] = {}
  places, chosen = set(), []
  for candidate in _ranked(candidates):
    _, begin, end = candidate.span
    crosses = any(
      furthest_end.get(i, end) > end or furthest_begin.get(i, begin) < begin
      for i in range(begin + 1, end)
    )
    if not crosses and (begin, end) not in places:
      places.add((begin, end))
      furthest_end[begin] = max(furthest_end.get(begin, end), end)
      furthest_begin[end] = min(furthest_begin.get(end, begin), begin)
      chosen.append(candidate)
  return chosen


def select_above(
  chosen: Iterable[Candidate], threshold: float
) -> list[Candidate]:
  """Those over the threshold, in the order of the text; outer ones first."""
  kept = [c for c in chosen if c.margin > threshold]
  return sorted(kept, key=lambda c: (c.span.begin, -c.span.end))


def calibrate_threshold(
  chosen: Sequence[Sequence[Candidate]], gold: Sequence[Sequence[Entity]]
) -> tuple[float, float]:
  """The threshold of the highest F1, and that F1.

  As spans are taken from the largest margin on, those over a threshold are the
  same whether it is applied before or after: one pass finds the best.

  Args:
    chosen: of each sentence, without a threshold.
    gold: of each sentence.

  Returns:
    Midway between two margins; of equally good thresholds that nearest to 0,
    the argmax, and 0 itself where nothing is right.
  """
  margins = np.array([c.margin for of_one in chosen for c in of_one])
  right = np.array(
    [
      c.span in truth
      for of_one, truth in zip(chosen, map(set, gold), strict=True)
      for c in of_one
    ],
    bool,
  )
  count = sum(len(set(truth)) for truth in gold)
  if not right.any():
    return 0.0, 0.0
  order = np.argsort(-margins, kind="stable")
  margins, hits = margins[order], np.cumsum(right[order])
  f1 = 2 * hits / (np.arange(1, len(hits) + 1) + count)
  after = np.append(margins[1:], margins[-1] - 1.0)
  f1[margins == after] = 0  # No threshold lies between equal margins.
  thresholds = (margins + after) / 2
  # None at all is never best here, as something is right.
  best = np.flatnonzero(f1 == f1.max())
  pick = best[np.argmin(np.abs(thresholds[best]))]
  return float(thresholds[pick]), float(f1[pick])


def _ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
  """The largest margin first; then by place, for the same answer always."""
  return sorted(candidates, key=lambda c: (-c.margin, c.span))
