"""Table 1 of the BERT paper: its rows give its averages."""

import json

import pytest

from maskedlm.cli import finetune
from maskedlm.finetune.classification import glue_table

# Devlin et al. 2019, table 1: the nine numbers of each row and its Average.
PUBLISHED = [
  ((80.6, 80.1, 66.1, 82.3, 93.2, 35.0, 81.0, 86.0, 61.7), 74.0),
  ((76.4, 76.1, 64.8, 79.9, 90.4, 36.0, 73.3, 84.9, 56.8), 71.0),
  ((82.1, 81.4, 70.3, 88.1, 91.3, 45.4, 80.0, 82.3, 56.0), 75.2),
  ((84.6, 83.4, 71.2, 90.1, 93.5, 52.1, 85.8, 88.9, 66.4), 79.6),
  ((86.7, 85.9, 72.1, 91.1, 94.9, 60.5, 86.5, 89.3, 70.1), 81.9),
]


def results_of(row):
  """Returns results with the row's numbers, and others beside them."""
  matched, mismatched, qqp, qnli, sst2, cola, stsb, mrpc, rte = (
    x / 100 for x in row
  )
  return {
    "wnli": {"best_metric": "accuracy", "accuracy": 0.01},
    "rte": {"best_metric": "accuracy", "accuracy": rte, "mcc": 0.02},
    "mrpc": {"best_metric": "accuracy_f1", "accuracy_f1": 0.03, "f1": mrpc},
    "stsb": {
      "best_metric": "pearson_spearman",
      "pearson_spearman": 0.04,
      "pearson": 0.05,
      "spearman": stsb,
    },
    "cola": {"best_metric": "mcc", "mcc": cola, "accuracy": 0.06},
    "sst2": {"best_metric": "accuracy", "accuracy": sst2, "f1": 0.07},
    "qnli": {"best_metric": "accuracy", "accuracy": qnli, "f1": 0.08},
    "qqp": {"best_metric": "accuracy_f1", "accuracy_f1": 0.09, "f1": qqp},
    "mnli": {
      "best_metric": "accuracy",
      "accuracy": matched,
      "also_scored": {
        "/x/other.tsv": {"accuracy": 0.1},
        "/x/dev_mismatched.tsv": {"accuracy": mismatched},
      },
    },
  }


@pytest.mark.parametrize(("row", "average"), PUBLISHED)
def test_the_published_rows_give_the_published_averages(row, average):
  found = glue_table.table_row(results_of(row))
  assert [round(100 * x, 1) for x in found.values()] == [*row, average]


def test_the_row_and_its_average_are_printed_beside_todays(tmp_path, capsys):
  results = results_of(PUBLISHED[3][0])
  summary = glue_table.summarise_suite(results)
  finetune.print_suite(results, (), tmp_path, summaries=[summary])
  *_, heading, columns, _, row = capsys.readouterr().out.splitlines()
  assert "arXiv:1810.04805" in heading
  assert columns.split(" | ")[1:4] == ["MNLI-(m/mm)", "QQP", "QNLI"]
  assert row == (
    "| this suite | 84.6/83.4 | 71.2 | 90.1 | 93.5 | 52.1 | 85.8 | 88.9 "
    "| 66.4 | 79.6 |"
  )
  written = json.loads((tmp_path / "suite.json").read_text())
  assert written["bert_table_1"]["Average"] == pytest.approx(7.16 / 9)
  # The mean of the chosen metrics, one for each of nine tasks.
  chosen = (0.01, 0.664, 0.03, 0.04, 0.521, 0.935, 0.901, 0.09, 0.846)
  assert written["average"] == pytest.approx(sum(chosen) / 9)


def test_what_was_not_run_is_named():
  results = results_of(PUBLISHED[3][0])
  for name in ("qqp", "stsb"):
    del results[name]
  del results["mnli"]["also_scored"]
  row = glue_table.table_row(results)
  six = (0.846, 0.901, 0.935, 0.521, 0.889, 0.664)
  assert row["Average"] == pytest.approx(sum(six) / 6)
  *_, cells, missing = glue_table.format_row(row)
  assert cells.startswith("| this suite | 84.6/- | - | 90.1 |")
  assert "6 of the 9" in missing
  assert missing.endswith("without MNLI-mm, QQP, STS-B")
