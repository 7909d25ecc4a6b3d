"""Chooses spans of which no two cross."""

import numpy as np


def without_crossings(begins, ends, scores) -> list[int]:
  """Returns the indices of spans of which no two cross, the best first.

  Each is in, around or outside of every other (Lee et al. 2017,
  arXiv:1707.07045, section 5). Of those that do cross, the one with the highest
  score stays, and the first of equal ones.

  Args:
    begins, ends: [N], the first word of each, and one after the last.
    scores: [N].
  """
  count = int(np.max(ends, initial=0))
  furthest = np.arange(1, count + 1)  # By first word: the largest end.
  nearest = np.arange(count)  # By last word: the smallest begin.
  chosen = []
  for i in np.argsort(-np.asarray(scores), kind="stable").tolist():
    begin, end = int(begins[i]), int(ends[i])
    if (
      furthest[begin + 1 : end].max(initial=0) > end
      or nearest[begin : end - 1].min(initial=count) < begin
    ):
      continue
    furthest[begin] = max(furthest[begin], end)
    nearest[end - 1] = min(nearest[end - 1], begin)
    chosen.append(i)
  return chosen
