"""Draws the training curves of workdirs in one picture: `maskedlm plot run`.

The data are in metrics.jsonl, which a run extends as it trains, so unfinished
runs can be drawn, too.
"""

import functools
import itertools
import math
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, DataError, check_name
from maskedlm.core.measured import parse_line
from maskedlm.core.open_file import open_file
from maskedlm.inference.plots import figure
from maskedlm.planning.inspect import schedules
from maskedlm.pretraining import objectives
from maskedlm.runtime import buckets, storage_errors
from maskedlm.training import phases
from maskedlm.training.checkpoints import resume

HELD_OUT = "heldout/"
SCORE = r"(accuracy$|(^|_)(f1|exact_match|mcc|pearson|spearman)$)"
MOST_POINTS = 1000  # Of a schedule.
WIDTH, HEIGHT = 3.3, 2.1  # A panel's size in inches.
LEAST = 1.5  # Its width, at least.
BESIDE, BETWEEN = 0.85, 0.75  # The space beside and below it.


class Curve(NamedTuple):
  """A metric over the steps, or over the tokens read until then."""

  steps: list[float]
  values: list[float]


Run = Mapping[str, Curve]  # Name in metrics.jsonl -> curve.


class Panel(NamedTuple):
  """A metric of all runs."""

  metric: str
  title: str
  unit: str
  form: str  # Format of the numbers on its axis, for str.format; or "%".
  from_zero: bool  # Whether the axis begins at 0.


def read_run(workdir: str) -> Run:
  """Reads the curves of a run; an incomplete last line is ignored.

  The learning rate is that of each step, by config.json.

  Raises:
    DataError: there is no such file, a line is malformed, or nothing is logged.
    ConfigError: the workdir is a remote address.
  """
  buckets.folder(workdir)
  path = pathlib.Path(workdir) / "metrics.jsonl"
  try:
    with open_file(path) as file:
      lines = file.read().decode("utf-8", "replace").split("\n")
  except OSError as error:
    storage_errors.raise_if_temporary(path, error)
    raise DataError(
      f"{path}: {error.strerror}; expected the workdir of a run."
    ) from None
  curves: dict[str, Curve] = {}
  for number, line in enumerate(lines, 1):
    if not line.strip():
      continue
    try:
      step, points = parse_line(line)
    except ValueError:
      if number == len(lines):  # Being written, or cut off when killed.
        continue
      raise DataError(
        f"{path}:{number}: not a line of metrics: {line[:40]!r}; expected "
        'such as {"step": 100, "loss": 6.5}.'
      ) from None
    for name, value in points.items():
      curve = curves.setdefault(name, Curve([], []))
      curve.steps.append(step)
      curve.values.append(value)
  if not curves:
    raise DataError(
      f"{path}: no step is logged yet; the first comes after "
      "config.train.log_every steps."
    )
  return with_schedule(curves, resume.read_config(path.parent))


def with_schedule(run: Run, values: Mapping[str, Any]) -> Run:
  """Returns the curves with the learning rate of each step.

  Args:
    run: its learning_rate has, at each logged step, the mean since the last.
    values: the run's config.json; if it doesn't explain the logged rates, as
      after a change of options, they stay as they are.
  """
  logged = run.get("learning_rate", Curve([], []))
  try:
    config = ConfigDict(values)
    parts = (
      phases.split(config, objectives.switched)
      if "phases" in values
      else phases.single(config)
    )
    ends = np.array(logged.steps)
    rates = np.concatenate(
      [
        schedules.rate(part)(np.arange(part.begin, min(part.end, ends[-1])))
        for part in parts
        if part.begin < ends[-1]
      ]
    )
    sums = np.cumsum([0.0, *rates])[np.array([0, *ends])]
    means = np.diff(sums) / np.diff([0, *ends])
    explained = np.allclose(means, logged.values, rtol=1e-3)
  except (AttributeError, ConfigError, IndexError, TypeError, ValueError):
    return run  # Of an older version, perhaps.
  if not explained:
    return run
  steps = np.unique(np.linspace(1, ends[-1], MOST_POINTS).astype(int))
  drawn = Curve(steps.tolist(), rates[steps - 1].tolist())
  return {**run, "learning_rate": drawn}


def last_step(run: Run) -> int:
  """Returns the last logged step."""
  return int(max(curve.steps[-1] for curve in run.values()))


def over_tokens(run: Run, name: str) -> Run:
  """Returns the curves of a run over the tokens that it had read.

  Args:
    run: over the steps. Each line of training has the tokens since the line
      before; between two lines, they are interpolated.
    name: of the run, for the error.

  Raises:
    DataError: the tokens are not logged.
  """
  if "tokens" not in run:
    raise DataError(
      f"{name}: its metrics.jsonl doesn't count tokens, as an older version "
      "wrote it: leave out --over=tokens."
    )
  steps, tokens = run["tokens"]
  steps, tokens = [0, *steps], [0, *itertools.accumulate(tokens)]
  return {
    metric: Curve(np.interp(curve.steps, steps, tokens).tolist(), curve.values)
    for metric, curve in run.items()
  }


# What the axis below shows -> a function (run, its name) -> the run over that.
AXES = {"steps": lambda run, name: run, "tokens": over_tokens}


def choose_panels(runs: Sequence[Run]) -> list[Panel]:
  """Returns the panels for the runs: the most telling ones first.

  They are the terms of the loss, scores, the whole loss, learning rate, speed.
  """
  names = list(
    dict.fromkeys(name.removeprefix(HELD_OUT) for run in runs for name in run)
  )
  names = [name for name in names if "/" not in name]  # LANGUAGE/metric.
  terms = [name for name in names if name.endswith("_loss")]
  panels = [Panel(n, panel_title(n), "nats", "{:g}", False) for n in terms]
  scores = [name for name in names if re.search(SCORE, name)]
  for name in scores:
    is_share = name.endswith("accuracy")
    unit_and_form = ("share of all", "%") if is_share else ("score", "{:g}")
    panels.append(Panel(name, panel_title(name), *unit_and_form, False))
  if not terms or not all(map(_is_one_term, runs)):
    unit = "sum of the terms" if terms else "loss"
    panels.append(Panel("loss", "Loss", unit, "{:g}", False))
  panels += [
    Panel("learning_rate", "Learning rate", "", "{:g}", True),
    Panel("tokens_per_second", "Speed", "tokens/s", "{:,.0f}", True),
  ]
  return [panel for panel in panels if panel.metric in names]


def named_panels(runs: Sequence[Run], names: Sequence[str]) -> list[Panel]:
  """Returns the panels of metrics by their names in metrics.jsonl, in order.

  Raises:
    ConfigError: no run has a metric; the message lists those that they have.
  """
  usual = {panel.metric: panel for panel in choose_panels(runs)}
  usual |= {
    HELD_OUT + name: panel._replace(
      metric=HELD_OUT + name, title=f"{panel.title}, held out"
    )
    for name, panel in usual.items()
  }
  logged = {name for run in runs for name in run}
  known = logged | {name.removeprefix(HELD_OUT) for name in logged}
  for name in names:
    check_name("--panels", name, sorted(known))
  return [
    usual.get(name, Panel(name, panel_title(name), "", "{:g}", False))
    for name in names
  ]


def draw_curves(
  path: str,
  runs: Mapping[str, Run],
  *,
  panels: Sequence[str],
  over: Sequence[str],
  columns: int,
  width: float,
) -> None:
  """Draws the curves of runs by name, with a colour for each run.

  Args:
    runs: name -> curves.
    panels: the metrics to draw, by their names in metrics.jsonl; () for the
      losses, scores, rate and speed that there are. A name that begins with
      "heldout/" is drawn held out only.
    over: what the axes below show, of AXES; a panel for each.
    columns: panels beside each other, at most.
    width: of the picture in inches; 0 for panels of WIDTH.

  Raises:
    DataError: the runs have none of the metrics that are drawn, or no tokens.
    ConfigError: a metric is unknown, or width is too small; see also
      figure.open_figure.
    StorageError: see figure.open_figure.
  """
  all_runs = list(runs.values())
  drawn = named_panels(all_runs, panels) if panels else choose_panels(all_runs)
  if not drawn:
    raise DataError(
      f"{', '.join(runs)}: metrics.jsonl has none of the metrics that are "
      "drawn: a loss, a score, learning_rate, tokens_per_second."
    )
  panels_over = [(panel, axis) for panel in drawn for axis in over]
  columns = min(columns, len(panels_over))
  rows = math.ceil(len(panels_over) / columns)
  legend = figure.legend_height(len(runs) + 2)
  width = width or columns * (WIDTH + BESIDE) + 0.2
  side = (width - 0.2) / columns - BESIDE  # A panel's width.
  if side < LEAST or width > 100:
    least = columns * (LEAST + BESIDE) + 0.2
    raise ConfigError(
      f"--width={width:g}: expected {least:.1f} to 100 inches for "
      f"{counted(columns, 'column')} of panels; change it, or --columns."
    )
  height = rows * (HEIGHT + BETWEEN) + legend + 0.1
  text = "".join(runs)
  runs_over = {
    axis: [AXES[axis](run, name) for name, run in runs.items()] for axis in over
  }
  with figure.open_figure(path, width=width, height=height, text=text) as fig:
    for i, (panel, axis) in enumerate(panels_over):
      row, column = divmod(i, columns)
      left = BESIDE + column * (side + BESIDE) - 0.1
      bottom = (rows - 1 - row) * (HEIGHT + BETWEEN) + 0.45
      axes = figure.add_axes(fig, (left, bottom, side, HEIGHT))
      _label_axes(axes, panel, axis)
      for j, run in enumerate(runs_over[axis]):
        _draw_metric(axes, run, panel.metric, **figure.style(j))
      if panel.from_zero:
        axes.set_ylim(bottom=0)
    lines = [(name, figure.style(j)) for j, name in enumerate(runs)]
    lines += [
      ("in training", {"color": "black", **TRAIN}),
      ("held out", {"color": "black", "marker": figure.marker(0), **HELDOUT}),
    ]
    figure.add_legend(fig, lines, left=BESIDE - 0.1, top=height - 0.1)


def _label_axes(axes, panel: Panel, axis: str) -> None:
  """Writes a panel's title, units and numbers."""
  from matplotlib import ticker

  axes.set_title(panel.title)
  axes.set_ylabel(panel.unit)
  axes.set_xlabel(axis)
  axes.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
  axes.xaxis.set_major_formatter(
    ticker.StrMethodFormatter("{x:,.0f}")
    if axis == "steps"
    else ticker.EngFormatter(sep="")
  )
  axes.yaxis.set_major_locator(ticker.MaxNLocator(6))
  axes.yaxis.set_major_formatter(
    ticker.FuncFormatter(functools.partial(_format_number, panel.form))
  )


TRAIN = {"linewidth": 1.0, "alpha": 0.6}
HELDOUT = {"linewidth": 1.4, "markersize": 4.5, "markeredgecolor": "white"}


def _format_number(form: str, value: float, place: int) -> str:
  """Returns a number on an axis as text, with all its digits, such as 12.5%."""
  del place
  return f"{100 * value:.4g}%" if form == "%" else form.format(value)


def _draw_metric(axes, run: Run, metric: str, color: str, marker: str) -> None:
  """Draws a metric of a run, in training and held out."""
  if metric in run and not metric.startswith(HELD_OUT):
    # A line needs two points.
    dot = {"marker": "."} if len(run[metric].steps) == 1 else {}
    axes.plot(*run[metric], color=color, **TRAIN, **dot)
  heldout = HELD_OUT + metric.removeprefix(HELD_OUT)
  if heldout in run:
    axes.plot(*run[heldout], color=color, marker=marker, **HELDOUT)


def _is_one_term(run: Run) -> bool:
  """Returns whether the loss equals its only term."""
  terms = [name for name in run if name.endswith("_loss")]
  terms = [name for name in terms if not name.startswith(HELD_OUT)]
  if len(terms) != 1 or "loss" not in run:
    return False
  pairs = zip(run["loss"].values, run[terms[0]].values, strict=False)
  return all(math.isclose(a, b, rel_tol=1e-4) for a, b in pairs)


def panel_title(name: str) -> str:
  """Returns "MLM loss" for "mlm_loss"."""
  words = name.split("_")
  known = {"mlm", "nsp", "sop", "sbo", "rtd", "mcc", "f1"}
  words = [word.upper() if word in known else word for word in words]
  return " ".join([words[0][0].upper() + words[0][1:], *words[1:]])
