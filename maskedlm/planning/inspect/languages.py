"""Computes what a run reads of each language, for `maskedlm inspect`.

It follows from the Task's shares (data/batches/domain_mixture.py): exactly for
whole epochs, as the expected value for a part of one.
"""

from collections.abc import Sequence
from typing import Any

from maskedlm.core.task import Task
from maskedlm.data.corpus import store
from maskedlm.runtime import console
from maskedlm.training.phases import Phase


def language_schedule(
  phases: Sequence[Phase], tasks: Sequence[Task], corpus: store.Corpus
) -> dict[str, dict[str, float]]:
  """Returns name -> a language's training text, and what the run reads of it.

  tokens and rows count the corpus, in rows of the first phase; share is the
  language's share of the batches' rows, natural_share the same for alpha = 1;
  repeats is how often the run reads each row, and tokens_read is repeats times
  tokens. All phases have this corpus.
  """
  table: dict[str, dict[str, float]] = {}
  for i, part in enumerate(corpus.domains):
    first = tasks[0].shares
    repeats = read = 0.0
    for phase, task in zip(phases, tasks, strict=True):
      count = (phase.end - phase.begin) * phase.config.data.batch_size
      share = task.shares[i]
      drawn = count * share.drawn / _total(task.shares, "drawn")
      read += drawn
      repeats += drawn / share.num_rows
    table[part["name"]] = {
      "tokens": part["train"]["tokens"],
      "rows": first[i].num_rows,
      "natural_share": first[i].num_rows / _total(first, "num_rows"),
      "share": first[i].drawn / _total(first, "drawn"),
      "rows_per_epoch": first[i].drawn,
      "rows_read": read,
      "repeats": repeats,
      "tokens_read": repeats * part["train"]["tokens"],
    }
  return table


def format_schedule(table: dict[str, dict[str, Any]]) -> list[str]:
  """Formats the table of `language_schedule`, a line for each language."""
  columns = ("", "tokens", "rows", "of all", "read", "rows read", "repeats")
  return console.table(
    (*columns, "tokens read"),
    (
      (
        name,
        f"{x['tokens']:,}",
        f"{x['rows']:,}",
        f"{x['natural_share']:.2%}",
        f"{x['share']:.2%}",
        f"{x['rows_read']:,.0f}",
        f"{x['repeats']:.2f}",
        f"{x['tokens_read']:,.0f}",
      )
      for name, x in table.items()
    ),
  )


def _total(shares, field: str) -> int:
  return sum(getattr(share, field) for share in shares)
