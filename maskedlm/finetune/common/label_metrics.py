"""Metrics of labels and scores (GLUE's), and reports of them.

Values are fractions, or correlations from -1 to 1. An undefined metric, such as
the correlation with a constant, is 0 rather than NaN.
"""

import collections
from collections.abc import Iterable, Sequence

import numpy as np

# Metrics that may choose the best checkpoint: higher is better.
LABEL_METRICS = ("accuracy", "macro_f1", "mcc")
POSITIVE_LABEL_METRICS = ("f1", "accuracy_f1")  # If there is a positive label.
SCORE_METRICS = ("pearson", "spearman", "pearson_spearman")


def evaluate_labels(
  gold: Sequence[str], predicted: Sequence[str], *, positive: str = ""
) -> dict[str, float]:
  """Returns accuracy, macro_f1, mcc and, for a positive label, f1, accuracy_f1.

  macro_f1 is the mean over the labels that occur in either. accuracy_f1 is the
  mean of accuracy and f1, as GLUE averages them for MRPC and QQP.
  """
  from sklearn import metrics  # Here: a second of every run's start.

  # Scikit-learn warns if all labels are equal.
  is_constant = len({*gold, *predicted}) == 1
  values = {
    "accuracy": metrics.accuracy_score(gold, predicted),
    "macro_f1": metrics.f1_score(
      gold, predicted, average="macro", zero_division=0.0
    ),
    # Matthews (1975); Gorodkin's generalisation beyond two classes.
    "mcc": 0 if is_constant else metrics.matthews_corrcoef(gold, predicted),
  }
  if positive:
    f1 = metrics.f1_score(
      np.array(gold) == positive,
      np.array(predicted) == positive,
      zero_division=0.0,
    )
    values |= {"f1": f1, "accuracy_f1": (values["accuracy"] + f1) / 2}
  return {name: float(value) for name, value in values.items()}


def evaluate_scores(
  gold: Sequence[float], predicted: Sequence[float]
) -> dict[str, float]:
  """Returns pearson, spearman, their mean pearson_spearman, and mse."""
  from scipy import stats

  a, b = np.asarray(gold, np.float64), np.asarray(predicted, np.float64)
  pearson = spearman = 0.0
  if len(a) > 1 and all(0 < np.ptp(x) < np.inf for x in (a, b)):
    pearson = float(stats.pearsonr(a, b)[0])
    spearman = float(stats.spearmanr(a, b)[0])
  return {
    "pearson": pearson,
    "spearman": spearman,
    "pearson_spearman": (pearson + spearman) / 2,
    "mse": float(np.mean((a - b) ** 2)),
  }


def score_table(
  gold: Iterable[float], predicted: Iterable[float], name: str
) -> str:
  """Returns tab-separated lines: a gold score and the predicted one, `name`."""
  pairs = zip(gold, predicted, strict=True)
  return "\n".join(
    [f"gold\t{name}", *(f"{a:g}\t{b:.4f}" for a, b in pairs), ""]
  )


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
