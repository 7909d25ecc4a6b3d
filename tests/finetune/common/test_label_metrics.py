"""Metrics of labels and scores, by hand and against SciPy."""

import math

import numpy as np
import pytest
import scipy.stats

from maskedlm.finetune.common import label_metrics
from maskedlm.finetune.common.label_metrics import confusion_table


def test_class_metrics_by_hand():
  """For "1": 2 true and 1 false positives, 1 false and 3 true negatives."""
  gold = list("1110000")
  found = list("1101000")
  values = label_metrics.evaluate_labels(gold, found, positive="1")
  f1, f0 = 2 * 2 / (2 * 2 + 1 + 1), 2 * 3 / (2 * 3 + 1 + 1)
  assert values == pytest.approx(
    {
      "accuracy": 5 / 7,
      "f1": f1,
      "macro_f1": (f1 + f0) / 2,
      "accuracy_f1": (5 / 7 + f1) / 2,
      "mcc": (2 * 3 - 1 * 1) / math.sqrt(3 * 3 * 4 * 4),
    }
  )
  assert "f1" not in label_metrics.evaluate_labels(gold, found)


def test_a_label_that_is_only_predicted_has_a_column():
  assert confusion_table(list("aab"), list("acb")) == (
    "gold \\ predicted\ta\tb\tc\na\t1\t0\t1\nb\t0\t1\t0\nc\t0\t0\t0\n"
  )


def test_predicting_one_class_gives_zeros_not_nan():
  values = label_metrics.evaluate_labels(
    list("1010"), list("0000"), positive="1"
  )
  assert values["mcc"] == values["f1"] == 0
  assert values["macro_f1"] == pytest.approx((2 / 3) / 2)


@pytest.mark.filterwarnings("error")
def test_a_single_label_that_is_always_correct_gives_no_warning():
  values = label_metrics.evaluate_labels(["1"], ["1"], positive="1")
  assert values == {
    "accuracy": 1,
    "macro_f1": 1,
    "mcc": 0,
    "f1": 1,
    "accuracy_f1": 1,
  }


def test_score_metrics():
  gold, found = [1.0, 2.0, 3.0, 5.0], [2.0, 1.0, 4.0, 9.0]
  values = label_metrics.evaluate_scores(gold, found)
  # Deviations -1.75, -.75, .25, 2.25 and -2, -3, 0, 5.
  pearson = (3.5 + 2.25 + 11.25) / math.sqrt(8.75 * 38)
  spearman = 1 - 6 * (1 + 1) / (4 * 15)  # Ranks 1 2 3 4 and 2 1 3 4.
  assert values == pytest.approx(
    {
      "pearson": pearson,
      "spearman": spearman,
      "pearson_spearman": (pearson + spearman) / 2,
      "mse": (1 + 1 + 1 + 16) / 4,
    }
  )
  rng = np.random.default_rng(0)
  gold, found = rng.integers(0, 5, (2, 31))
  values = label_metrics.evaluate_scores(gold, found)
  assert values["spearman"] == pytest.approx(
    scipy.stats.spearmanr(gold, found).statistic
  )


def test_a_table_of_scores():
  made = label_metrics.score_table([3.8, 4.0], [0.12345, -1], "cosine")
  assert made == "gold\tcosine\n3.8\t0.1235\n4\t-1.0000\n"


def test_a_constant_has_correlation_zero():
  values = label_metrics.evaluate_scores([1.0, 2.0, 4.0], [3.0, 3.0, 3.0])
  assert (values["pearson"], values["spearman"]) == (0, 0)
  nan = float("nan")
  assert label_metrics.evaluate_scores([1.0, 2.0], [nan, 3.0])["pearson"] == 0
