"""CKY: the tree with the highest sum of its spans' margins.

A span's margin is the log-odds of its best label against NULL. Any span may be
NULL, at 0, so a node of the binary tree that CKY builds may be a mere grouping,
and a bracket may hold any number of others (Stern, Andreas and Klein 2017,
arXiv:1705.03919, section 5.1; Kitaev and Klein 2018, arXiv:1805.01052). If the
spans' labels were independent, this would be the most probable of all sets of
labels that are a tree, since the probability of a set is that of all NULL times
exp of the margins.

best[i, w], for the w words from i on, is max(margin, 0) plus the best sum of
two parts; only spans as wide as the widest candidate are looked at, so a
sentence much longer than a row takes time and memory linear in its length.
"""

import numpy as np


def best_spans(count: int, begins, widths, margins) -> list[int]:
  """Returns which candidates are in the best tree, in preorder.

  Args:
    count: the words of the sentence.
    begins, widths: [n], the first word and the number of words of each
      candidate; no two are the same span.
    margins: [n]; those that are not above 0 are never in the tree.
  """
  chosen = np.flatnonzero(margins > 0)
  if not len(chosen):
    return []
  begins, widths = (np.asarray(x, np.int64)[chosen] for x in (begins, widths))
  widest = int(widths.max())
  # The best sum of the span of w words that begins with word i, or ends before
  # it, at [i, w].
  left = np.zeros((count + 1, widest + 1), np.float32)
  right = np.zeros((count + 1, widest + 1), np.float32)
  left[begins, widths] = np.asarray(margins)[chosen]
  right[:, 1] = np.roll(left[:, 1], 1)
  for w in range(2, widest + 1):
    n = count + 1 - w
    parts = left[:n, 1:w] + right[w:, w - 1 : 0 : -1]
    left[:n, w] += parts.max(axis=1)
    right[w:, w] = left[:n, w]
  places = dict(
    zip(
      zip(begins.tolist(), widths.tolist(), strict=True),
      chosen.tolist(),
      strict=True,
    )
  )
  tree, stack = [], _best_row(right)
  while stack:
    i, w = stack.pop()
    if (i, w) in places:
      tree.append(places[i, w])
    if w > 1:
      parts = left[i, 1:w] + right[i + w, w - 1 : 0 : -1]
      k = int(parts.argmax()) + 1
      stack += [(i + k, w - k), (i, k)]
  return tree


def _best_row(right: np.ndarray) -> list[tuple[int, int]]:
  """Returns the spans, last first, that cover a sentence with the best sum.

  `right` [i, w] is the best sum of the span of w words that ends before word i.
  """
  count, widest = right.shape[0] - 1, right.shape[1] - 1
  if widest == count:
    return [(0, count)]
  total, width = np.zeros(count + 1), np.zeros(count + 1, np.int64)
  for end in range(1, count + 1):
    most = min(widest, end)
    sums = total[end - most : end][::-1] + right[end, 1 : most + 1]
    width[end] = sums.argmax() + 1
    total[end] = sums[width[end] - 1]
  spans, end = [], count
  while end:
    spans.append((end - int(width[end]), int(width[end])))
    end -= int(width[end])
  return spans
