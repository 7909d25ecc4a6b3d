"""Decides whether short texts share rows if objective.pack is None."""

from collections.abc import Callable
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
  phases: list[tuple[int, int]], *, log: Callable[[str], None]
) -> bool:
  """Returns whether packing saves a tenth of the rows in any phase; logs it.

  `phases` has the rows of an epoch in each, packed and not.
  """
  if not any(packed <= MAX_ROWS_RATIO * alone for packed, alone in phases):
    return False
  counts = ", then ".join(
    dict.fromkeys(f"{p:,} instead of {a:,}" for p, a in phases)
  )
  log(f"short texts share rows (objective.pack=True): {counts} an epoch")
  return True
