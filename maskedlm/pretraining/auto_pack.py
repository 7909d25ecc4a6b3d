"""Decides whether short texts share rows if objective.pack is None."""

from collections.abc import Callable, Sequence
from typing import Any

from maskedlm.core.options import frozen_option

# Pack if at most this share of the rows remains: a packed step is up to 2%
# slower on a CPU (docs/results/performance.md), and packing departs a little
# from the papers.
MAX_ROWS_RATIO = 0.9


def pack_option() -> Any:
  """Returns the option `pack` of an objective whose rows can be packed."""
  return frozen_option(
    None,
    "Put several short rows in one row, each attending only to itself; None: "
    "where that saves a tenth of the rows (auto_pack.py).",
  )


def decide(
  rows_per_epoch: Callable[[bool], Sequence[int]], *, log: Callable[[str], None]
) -> bool:
  """Returns whether to pack rows if objective.pack is None.

  Rows are packed if that saves a tenth of them in any phase.

  Args:
    rows_per_epoch: whether rows are packed -> their number in each phase.
    log: called with one line if rows are packed.
  """
  phases = list(zip(rows_per_epoch(True), rows_per_epoch(False), strict=True))
  if not any(packed <= MAX_ROWS_RATIO * alone for packed, alone in phases):
    return False
  counts = ", then ".join(
    dict.fromkeys(f"{p:,} instead of {a:,}" for p, a in phases)
  )
  log(f"short texts share rows (objective.pack=True): {counts} an epoch")
  return True
