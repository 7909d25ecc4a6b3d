"""Makes finetune.py's table from the finished runs.

Scores are percent, mean ± standard deviation over the seeds; the verdict
measures their distance in pooled standard deviations. Seconds are medians.
Ratios are the peer's time over maskedlm's, with compiling, and without, as in
the second run of the same command line, which finds the programs compiled.
"""

import json
import math
import pathlib
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from finetune_rows import FEATURES, OURS, PADDED, PEER, ROWS, SCRATCH

from maskedlm.core.counts import counted


def load(workdir: pathlib.Path) -> dict[tuple[str, str], list]:
  """Returns {(row, contender): its results}, in the order of ROWS."""
  runs = [
    json.loads(path.read_text())
    for path in sorted(workdir.glob("*-seed*.json"))
  ]
  results = {
    (name, contender): [
      x for x in runs if (x["row"], x["contender"]) == (name, contender)
    ]
    for name in ROWS
    for contender in ROWS[name].contenders
  }
  return {key: values for key, values in results.items() if values}


def spread(runs: Sequence, metric: str) -> tuple[float, float] | None:
  """Returns (mean, standard deviation) in percent; None without results."""
  values = [100 * x["metrics"][metric] for x in runs]
  if not values:
    return None
  deviation = statistics.stdev(values) if len(values) > 1 else 0.0
  return statistics.mean(values), deviation


def median(runs: Sequence, name: str, *, without: str = "") -> float | None:
  """Returns the median of a field, less another one; None without results."""
  values = [x[name] - x.get(without, 0.0) for x in runs if name in x]
  return statistics.median(values) if values else None


def verdict(ours, peer) -> str:
  """Compares two (mean, deviation), by their pooled deviation."""
  if not ours or not peer:
    return ""
  distance = ours[0] - peer[0]
  if abs(distance) <= math.hypot(ours[1], peer[1]) / math.sqrt(2):
    return "within 1 sd"
  return "better" if distance > 0 else "worse"


def ratio(a: float | None, b: float | None) -> float | None:
  return a / b if a is not None and b else None


def format_score(value, form: str) -> str:
  """Formats a number, (mean, deviation) or None."""
  if isinstance(value, tuple):
    return " ± ".join(format_score(x, form) for x in value)
  return "" if value is None else format(value, form)


HEAD = (
  "task",
  "metric",
  "ours",
  "transformers",
  "",
  "from scratch",
  "seconds, ours",
  "compiling",
  "transformers",
  "ratio",
  "compiled before",
)


def tabulate(results: Mapping[tuple[str, str], list]) -> tuple[str, list[dict]]:
  """Returns (Markdown, records for --json)."""
  lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
  notes: list[str] = []
  records: list[dict[str, Any]] = []
  for name in dict.fromkeys(name for name, _ in results):
    row = ROWS[name]
    by_contender = {c: results.get((name, c), []) for c in row.contenders}
    ours, peer = by_contender[OURS], by_contender[PEER]
    time = median(ours, "seconds")
    compiling = median(ours, "compile_seconds")
    bare = median(ours, "seconds", without="compile_seconds")
    peer_time = median(peer, "seconds")
    for metric in row.metrics:
      scores = {
        c: spread(by_contender[c], metric) for c in (OURS, PEER, SCRATCH)
      }
      cells = (
        row.title,
        metric,
        format_score(scores[OURS], ".1f"),
        format_score(scores[PEER], ".1f"),
        verdict(scores[OURS], scores[PEER]),
        format_score(scores[SCRATCH], ".1f"),
        format_score(time, ".0f"),
        format_score(compiling, ".0f"),
        format_score(peer_time, ".0f"),
        format_score(ratio(peer_time, time), ".2f"),
        format_score(ratio(peer_time, bare), ".2f"),
      )
      lines.append(f"| {' | '.join(cells)} |")
      means = {c: (score or (None,))[0] for c, score in scores.items()}
      records.append(
        {
          "work": f"{row.title}, {metric}, {counted(len(ours), 'seed')}, "
          f"against {PEER}",
          "ours": means[OURS],
          "peer": means[PEER],
          "ratio": ratio(means[OURS], means[PEER]),
          "unit": "%",
          "scratch": means[SCRATCH],
          "deviations": {c: x and x[1] for c, x in scores.items()},
        }
      )
    records.append(
      {
        "work": f"{row.title}, training, compiling included, against {PEER}",
        "ours": time,
        "peer": peer_time,
        "ratio": ratio(peer_time, time),
        "unit": "s",
        "ours_compiling": compiling,
        "ours_cpu_seconds": median(ours, "cpu_seconds"),
        "peer_cpu_seconds": median(peer, "cpu_seconds"),
      }
    )
    predicting = [median(runs, "predict_seconds") for runs in (ours, peer)]
    records.append(
      {
        "work": f"{row.title}, predicting, against {PEER}",
        "ours": predicting[0],
        "peer": predicting[1],
        "ratio": ratio(*reversed(predicting)),
        "unit": "s",
      }
    )
    if all(predicting):
      notes.append(
        f"{row.title}, predicting: {predicting[0]:.1f} s, {PEER} "
        f"{predicting[1]:.1f} s."
      )
    if frozen := by_contender.get(FEATURES):
      mine = spread(ours, row.metrics[0]) or (None,)
      score = spread(frozen, row.metrics[0])
      notes.append(
        f"{row.title}, frozen encoder and BiLSTM: {row.metrics[0]} "
        f"{format_score(score, '.1f')}, {median(frozen, 'seconds'):.0f} s."
      )
      records.append(
        {
          "work": f"{row.title}, {row.metrics[0]}, against frozen features",
          "ours": mine[0],
          "peer": score[0],
          "ratio": ratio(mine[0], score[0]),
          "unit": "%",
          "deviation": score[1],
        }
      )
    if padded := by_contender.get(PADDED):
      other = median(padded, "seconds", without="compile_seconds")
      notes.append(
        f"{row.title}, training without compiling: "
        f"{format_score(bare, '.0f')} s packed, {other:.0f} s "
        f"padded to {row.length}, "
        f"{format_score(ratio(other, bare), '.2f')} times as long."
      )
      records.append(
        {
          "work": f"{row.title}, training without compiling: packed, against "
          f"padded to {row.length}",
          "ours": bare,
          "peer": other,
          "ratio": ratio(other, bare),
          "unit": "s",
        }
      )
  every = [x for runs in results.values() for x in runs]
  busy = [x["other_cores"] for x in every]
  notes.append(
    f"A run had {max(x['cores'] for x in every)} core(s); other processes kept "
    f"{statistics.median(busy):.2f} of them busy, at most {max(busy):.2f}."
  )
  if max(busy) > 0.1:
    notes.append("THE TIMES ARE NOT VALID: the machine must be idle otherwise.")
  return "\n".join([*lines, "", *notes]), records
