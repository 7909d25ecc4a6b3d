"""The row of the BERT paper's table of GLUE, from the results of a suite.

Devlin et al. 2019 (https://arxiv.org/abs/1810.04805), table 1: F1 for QQP and
MRPC, Spearman's correlation for STS-B, Matthews' for CoLA, accuracy for the
others. "Average" is the mean of the nine numbers of a row: both parts of MNLI
count, and WNLI doesn't.
"""

import pathlib
from collections.abc import Mapping
from typing import Any

from maskedlm.runtime import console

# Number -> the suite's variant and its metric, in the table's order.
_NUMBERS = {
  "MNLI-m": ("mnli", "accuracy"),
  "MNLI-mm": ("mnli", "accuracy"),
  "QQP": ("qqp", "f1"),
  "QNLI": ("qnli", "accuracy"),
  "SST-2": ("sst2", "accuracy"),
  "CoLA": ("cola", "mcc"),
  "STS-B": ("stsb", "spearman"),
  "MRPC": ("mrpc", "f1"),
  "RTE": ("rte", "accuracy"),
}


def table_row(results: Mapping[str, Mapping]) -> dict[str, float | None]:
  """Returns the nine numbers, as fractions, and their mean, "Average".

  Args:
    results: variant of configs/glue.py -> its result.json. MNLI-mm is the file
      of also_scored that has "mismatched" in its name.

  Returns:
    Column -> value; None for what was not run. The mean is over the others.
  """
  row = {}
  for name, (variant, metric) in _NUMBERS.items():
    values = results.get(variant, {})
    if name == "MNLI-mm":
      scored = values.get("also_scored", {}).items()
      matches = (x for n, x in scored if "mismatched" in pathlib.Path(n).name)
      values = next(matches, {})
    row[name] = values.get(metric)
  known = [value for value in row.values() if value is not None]
  return {**row, "Average": sum(known) / len(known) if known else None}


def format_row(row: Mapping[str, float | None]) -> list[str]:
  """Returns the table's heading and row in percent, and what the row lacks."""
  shown = {
    name: None if value is None else f"{100 * value:.1f}"
    for name, value in row.items()
  }
  mnli = "/".join(shown.pop(f"MNLI-{x}") or "-" for x in ("m", "mm"))
  lines = console.markdown_table(
    ("System", "MNLI-(m/mm)", *shown), [("this suite", mnli, *shown.values())]
  )
  missing = [name for name in _NUMBERS if row[name] is None]
  if missing:
    lines.append(
      f"Average of {len(_NUMBERS) - len(missing)} of the {len(_NUMBERS)} "
      f"numbers of table 1, without {', '.join(missing)}"
    )
  return lines


def summarise_suite(
  results: Mapping[str, Mapping],
) -> tuple[dict[str, Any], list[str]]:
  """Returns the row for suite.json and its lines; ({}, []) if it isn't GLUE."""
  if not any(variant in results for variant, _ in _NUMBERS.values()):
    return {}, []
  row = table_row(results)
  heading = "as table 1 of the BERT paper (arXiv:1810.04805) has it:"
  return {"bert_table_1": row}, [heading, *format_row(row)]
