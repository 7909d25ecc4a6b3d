"""A confusion matrix as text."""

import collections
from collections.abc import Iterable


def confusion_table(gold: Iterable[str], predicted: Iterable[str]) -> str:
  """Returns tab-separated counts: gold labels are rows, predicted are columns.

  Args:
    gold, predicted: a label for each example (or word), in the same order.
  """
  counts = collections.Counter(zip(gold, predicted, strict=True))
  labels = sorted({label for pair in counts for label in pair})
  lines = ["\t".join(["gold \\ predicted", *labels])]
  lines += [
    "\t".join([row, *(str(counts[row, column]) for column in labels)])
    for row in labels
  ]
  return "\n".join(lines) + "\n"
