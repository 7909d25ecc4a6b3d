"""Queries and passages: columns of files, and how a ranking is measured.

Tasks that rank passages share these. Each of their predictions has a rank, that
of the right passage, from 1, or None without a query.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from maskedlm.core.errors import DataError
from maskedlm.core.options import copy_option
from maskedlm.data.labelled.formats import passages
from maskedlm.data.labelled.formats.passages import Example
from maskedlm.finetune.common.options import Shared
from maskedlm.finetune.contract import FinetuneTask, Prediction, task_option

CUTOFFS = (1, 2, 5, 10, 20, 50, 100)  # Rows of the table ranks.tsv.


@dataclasses.dataclass(frozen=True)
class Passages:
  """The columns of files of queries and passages."""

  query: str = task_option(
    "",
    "Column of the query; '' for query, question or anchor.",
    overridable=True,
  )
  passage: str = task_option(
    "",
    "Column of the passage that answers it; '' for a usual one.",
    overridable=True,
  )
  label: str = task_option(
    "",
    "Column of 1 for a right and 0 for a wrong passage; '' for label, if there "
    "is one; 'none' if all are right.",
    overridable=True,
  )
  header: tuple[str, ...] = copy_option(Shared, "header")


def make_task(name: str, options: Passages, **fields: Any) -> FinetuneTask:
  """Returns a task of such files; `fields` are the others of FinetuneTask."""
  columns = passages.Columns(
    (options.query,) if options.query else passages.QUERY_COLUMNS,
    (options.passage,) if options.passage else passages.PASSAGE_COLUMNS,
    options.label,
  )
  return FinetuneTask(
    name=name,
    options=options,
    read_examples=functools.partial(
      passages.read_examples, columns=columns, header=options.header
    ),
    parse_line=functools.partial(passages.parse_line, columns=columns),
    format_tables=format_tables,
    split_key=lambda example: example.passages[0],
    demo_lines=("Who wrote it?\tThe author was Jane.\tIt rained for a week.",),
    **fields,
  )


def describe_labels(examples: Sequence[Example]) -> dict[str, Any]:
  """Returns {}; raises DataError if an example has no query."""
  for example in examples:
    if not example.query:
      raise DataError(
        f"{example.where}: the query is empty; expected a text. (Passages "
        "without a query are allowed in evaluation files only.)"
      )
  return {}


def evaluate_ranks(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, float]:
  """Returns mrr@10, the mean of 1 / rank (0 beyond 10), recall@1, recall@10."""
  del examples
  ranks = _ranks(predictions)
  return {
    "mrr@10": float(np.mean(np.where(ranks <= 10, 1 / ranks, 0))),
    "recall@1": float(np.mean(ranks <= 1)),
    "recall@10": float(np.mean(ranks <= 10)),
  }


def _ranks(predictions: Sequence[Prediction]) -> np.ndarray:
  """Returns the ranks of the examples that have one."""
  return np.array([p["rank"] for p in predictions if p["rank"]])


def check_gold(examples: Sequence[Example]) -> None:
  """Raises DataError if a correct passage is unknown, or there is no query."""
  for example in examples:
    if not example.is_gold:
      raise DataError(
        f"{example.query[:40]!r}: the passage that answers it is not known; "
        "expected a labelled file."
      )
  if not any(example.query for example in examples):
    raise DataError(
      f"{examples[0].where}: neither this nor any other example has a query; "
      "expected at least one."
    )


def format_tables(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Returns ranks.tsv: the share of queries whose passage is in the top k."""
  del examples
  ranks = _ranks(predictions)
  lines = [f"{k}\t{np.mean(ranks <= k):.4f}" for k in CUTOFFS]
  return {"ranks.tsv": "\n".join(["k\trecall", *lines, ""])}
