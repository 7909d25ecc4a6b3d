"""Selects compatible scored spans above a threshold, and calibrates it.

A span's margin is the log-odds of its best label against NULL. Above 0, that
label is the argmax; a calibrated threshold instead of 0 trades recall for
precision (Jurafsky & Martin, section 11.5.2). The spans of a sentence are
chosen greedily by descending margin, if compatible with those already chosen.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.data.labelled.bio import Entity
from maskedlm.finetune.common import crossings


class Candidate(NamedTuple):
  """A scored span."""

  margin: float
  span: Entity
  probability: float  # The probability of its label.


def row_candidates(
  row: Mapping[str, np.ndarray], labels: Sequence[str]
) -> list[Candidate]:
  """Returns the candidates of a row, as spans of the sentence it is part of.

  Args:
    row: margins (-inf where there is no span), labels, begins (words of the
      row), widths and probabilities, [W] each; first_word, the row's first word
      as an index in the sentence.
    labels: the names of labels, by id.
  """
  return [
    Candidate(margin, Entity(labels[label], begin, begin + width), share)
    for margin, label, begin, width, share in zip(
      row["margins"].tolist(),
      row["labels"].tolist(),
      (row["first_word"] + row["begins"]).tolist(),
      row["widths"].tolist(),
      row["probabilities"].tolist(),
      strict=True,
    )
    if margin > -math.inf
  ]


def without_overlaps(candidates: Iterable[Candidate]) -> list[Candidate]:
  """Returns candidates chosen so that no two share a word, the best first."""
  taken, chosen = 0, []  # One bit per word.
  for candidate in _ranked(candidates):
    _, begin, end = candidate.span
    words = (1 << end) - (1 << begin)
    if not taken & words:
      taken |= words
      chosen.append(candidate)
  return chosen


def without_crossings(candidates: Iterable[Candidate]) -> list[Candidate]:
  """Returns candidates chosen so that no two cross, the best first.

  No two have the same words.
  """
  places: dict[tuple[int, int], Candidate] = {}
  for candidate in _ranked(candidates):
    places.setdefault(candidate.span[1:], candidate)
  begins, ends = zip(*places, strict=True) if places else ((), ())
  ranked = [*places.values()]
  margins = [c.margin for c in ranked]
  chosen = crossings.without_crossings(begins, ends, margins)
  return [ranked[i] for i in chosen]


def select_above(
  chosen: Iterable[Candidate], threshold: float
) -> list[Candidate]:
  """Returns candidates above the threshold in text order, outer ones first."""
  kept = [c for c in chosen if c.margin > threshold]
  return sorted(kept, key=lambda c: (c.span.begin, -c.span.end))


def calibrate_threshold(
  chosen: Sequence[Sequence[Candidate]], gold: Sequence[Sequence[Entity]]
) -> tuple[float, float]:
  """Returns the threshold with the highest F1, and that F1.

  As spans are chosen by descending margin, a threshold gives the same spans
  whether it is applied before or after choosing, so one pass finds the best.

  Args:
    chosen: the candidates of each sentence, without a threshold.
    gold: the entities of each sentence.

  Returns:
    (threshold, F1). The threshold is midway between two margins; of equally
    good ones, the one nearest to 0; 0 if no candidate is correct.
  """
  margins = np.array([c.margin for candidates in chosen for c in candidates])
  is_correct = np.array(
    [
      c.span in truth
      for candidates, truth in zip(chosen, map(set, gold), strict=True)
      for c in candidates
    ],
    bool,
  )
  count = sum(len(set(truth)) for truth in gold)
  if not is_correct.any():
    return 0.0, 0.0
  order = np.argsort(-margins, kind="stable")
  margins, correct = margins[order], np.cumsum(is_correct[order])
  f1 = 2 * correct / (np.arange(1, len(correct) + 1) + count)
  after = np.append(margins[1:], margins[-1] - 1.0)
  f1[margins == after] = 0  # No threshold lies between equal margins.
  thresholds = (margins + after) / 2
  # Selecting nothing is never best here, as some candidate is correct.
  best = np.flatnonzero(f1 == f1.max())
  pick = best[np.argmin(np.abs(thresholds[best]))]
  return float(thresholds[pick]), float(f1[pick])


def _ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
  """Returns candidates by descending margin; ties are broken by place."""
  return sorted(candidates, key=lambda c: (-c.margin, c.span))
