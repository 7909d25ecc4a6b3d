"""Metrics of labels and scores (GLUE's), and tables to look at.

Values are fractions, or correlations within -1..1. What a metric can't be
computed from (a constant, for a correlation) gives 0, never NaN.
"""

from collections.abc import Sequence

import numpy as np
import scipy.stats
from sklearn import metrics

# What may choose the best checkpoint: of these, higher is better.
LABEL_METRICS = ("accuracy", "macro_f1", "mcc")
POSITIVE_LABEL_METRICS = ("f1", "accuracy_f1")  # Where there is a positive label.
SCORE_METRICS = ("pearson", "spearman", "pearson_spearman")


def evaluate_labels(
  gold: Sequence[str], predicted: Sequence[str], *, positive: str = ""
) -> dict[str, float]:
  """accuracy, macro_f1 and mcc; of a positive label f1 and accuracy_f1.

  macro_f1 is the mean over the labels that occur in either. accuracy_f1 is
  the mean of both, as GLUE averages them for MRPC and QQP.
  """
  is_constant = len({*gold, *predicted}) == 1  # Of which sklearn would warn.
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
  """pearson, spearman, their mean pearson_spearman, and the squared error."""
  gold, predicted = np.float64(gold), np.float64(predicted)
  pearson = spearman = 0.0
  if len(gold) > 1 and np.ptp(gold) > 0 and np.ptp(predicted) > 0:
    pearson = float(scipy.stats.pearsonr(gold, predicted)[0])
    spearman = float(scipy.stats.spearmanr(gold, predicted)[0])
  return {
    "pearson": pearson,
    "spearman": spearman,
    "pearson_spearman": (pearson + spearman) / 2,
    "mse": float(np.mean((gold - predicted) ** 2)),
  }


def confusion(gold: Sequence[str], predicted: Sequence[str]) -> str:
  """The confusion matrix as tab-separated text: a row for each gold label."""
  labels = sorted({*gold, *predicted})
  counts = metrics.confusion_matrix(gold, predicted, labels=labels)
  lines = [["gold \\ predicted", *labels]]
  lines += [
    [label, *map(str, row)] for label, row in zip(labels, counts, strict=True)
  ]
  return "".join("\t".join(line) + "\n" for line in lines)


def format_label_report(gold: Sequence[str], predicted: Sequence[str]) -> str:
  """Precision, recall, F1 and count of each label, and their means."""
  return metrics.classification_report(
    gold, predicted, digits=4, zero_division=0.0
  )


def format_errors_by_range(
  gold: Sequence[float], predicted: Sequence[float], *, parts: int = 5
) -> str:
  """Where the scores are wrong: a row for each equal part of gold's range."""
  gold, predicted = np.float64(gold), np.float64(predicted)
  edges = np.linspace(gold.min(), gold.max(), parts + 1)
  part = np.clip(np.searchsorted(edges, gold, side="right") - 1, 0, parts - 1)
  lines = ["from\tto\texamples\tmean gold\tmean predicted\tmean absolute error"]
  for i in range(parts):
    here = part == i
    if here.any():
      figures = (
        gold[here].mean(),
        predicted[here].mean(),
        np.abs(gold - predicted)[here].mean(),
      )
      bounds = f"{edges[i]:.3f}\t{edges[i + 1]:.3f}\t{here.sum()}"
      lines.append("\t".join([bounds, *(f"{x:.3f}" for x in figures)]))
  return "\n".join([*lines, ""])
