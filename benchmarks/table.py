"""The rows that every benchmark measures: their JSON, and Markdown tables."""

import json
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple


class Row(NamedTuple):
  """What was measured: our number beside another one, if there is one."""

  work: str  # What is measured, and against what.
  ours: float | None  # None if it could not be measured; `note` says why.
  peer: float | None = None
  ratio: float | None = None  # Above 1 where ours is the better one.
  unit: str = ""  # Of ours and peer.
  note: str = ""


def against(
  work: str, ours: float, peer: float, unit: str, note: str = ""
) -> Row:
  """Returns a Row of two rates, or of two times or sizes, by their unit."""
  less_is_better = unit in ("s", "ms", "MB", "GB")
  ratio = peer / ours if less_is_better else ours / peer
  return Row(work, ours, peer, ratio, unit, note)


def write(path: pathlib.Path | None, rows: Iterable[Row]) -> None:
  """Writes the rows as JSON, if a path is given."""
  if path:
    records = [row._asdict() for row in rows]
    path.write_text(json.dumps(records, indent=2) + "\n")


HEAD = ("what", "ours", "peer", "ratio")


def head(*more: str) -> str:
  """Returns the first two lines of a table, with more columns."""
  names = (*HEAD, *more)
  return f"| {' | '.join(names)} |\n{'|---' * len(names)}|"


def line(record: Mapping[str, Any], *more: str) -> str:
  """Returns the line of a Row's fields, with the cells of more columns."""
  note, unit = record.get("note"), record["unit"]
  what = f"{record['work']} ({note})" if note else record["work"]
  cells = (
    what,
    *(_number(record[name], unit) for name in ("ours", "peer")),
    _ratio(record["ratio"]),
    *more,
  )
  return f"| {' | '.join(cells)} |"


def show(rows: Sequence[Row]) -> str:
  """Returns the table of rows."""
  return "\n".join([head(), *(line(row._asdict()) for row in rows)])


def _number(x: float | None, unit: str) -> str:
  """Returns three digits, or all of those before the point, and the unit."""
  if x is None:
    return ""
  digits = f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"
  return f"{digits}{'' if unit == '%' else ' '}{unit}".rstrip()


def _ratio(x: float | None) -> str:
  if x is None:
    return ""
  return f"{x:.2f}" if x >= 0.1 else f"{100 * x:.2g}%"
