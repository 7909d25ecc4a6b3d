"""Fine-tunes over a grid: learning rate x batch size x epochs x seeds.

The papers choose the best of a grid on the development set, and restart small
tasks with several seeds, because some runs never start to learn. Each run is a
folder in the workdir; finished runs are not repeated.
"""

import itertools
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core import options
from maskedlm.finetune import run
from maskedlm.finetune.config import validate
from maskedlm.finetune.options import SWEPT, FinetuneConfig
from maskedlm.runtime import console, multihost, output_files
from maskedlm.training import nonfinite_rows, sharding


class Setting(NamedTuple):
  """A point of the grid; its runs differ in their seeds only."""

  learning_rate: float
  batch_size: int
  epochs: float


def sweep(config: FinetuneConfig, workdir: pathlib.Path) -> dict[str, Any]:
  """Runs the grid and prints the table; returns the best run's result.

  Writes sweep.json: a summary of each setting, and the name of the best run.

  Raises:
    ConfigError: a value of the grid is wrong; raised before the first run.
    NonFiniteError: every run diverged. If only some do, the others go on.
  """
  multihost.check_shared(workdir)
  grid = grid_settings(config)
  seeds = config.sweep.seeds or (config.seed,)
  runs = {}
  for setting, seed in itertools.product(grid, seeds):
    swept = {SWEPT[name]: value for name, value in setting._asdict().items()}
    runs[setting, seed] = options.changed(config, {**swept, "seed": seed})
  mesh = sharding.make_mesh(config.mesh)
  for run_config in runs.values():
    validate(run_config)
    sharding.check_batch(
      run_config.data.batch_size, run_config.train.accumulate, mesh
    )
  results, diverged = {}, {}
  for number, ((setting, seed), run_config) in enumerate(runs.items(), 1):
    name = run_folder(setting, seed)
    console.log(f"run {number} of {len(runs)}: {name}")
    try:
      with multihost.workdir(workdir / name) as folder:
        results[setting, seed] = run.finetune(run_config, folder)
    except nonfinite_rows.NonFiniteError as error:  # The others may succeed.
      console.log(f"{name} diverged: {error}")
      diverged[name] = error
  if not results:
    raise next(iter(diverged.values()))
  metric = next(iter(results.values()))["best_metric"]
  summaries = [
    summarise_runs(setting, ended)
    for setting in grid
    if (
      ended := [results[setting, s] for s in seeds if (setting, s) in results]
    )
  ]
  for line in format_table(summaries, metric):
    print(line)
  setting, seed = max(results, key=lambda key: _rank(results[key][metric]))
  best = results[setting, seed]
  print(f"best: {run_folder(setting, seed)}, {metric} {best[metric]:.4f}")
  if diverged:
    print(f"not in the table, because they diverged: {', '.join(diverged)}")
  summary = {
    "metric": metric,
    "diverged": list(diverged),
    "best": run_folder(setting, seed),
    "settings": summaries,
  }
  output_files.write_json(workdir / "sweep.json", summary)
  return best


def grid_settings(config: FinetuneConfig) -> list[Setting]:
  """Returns the grid; an empty option stands for the config's own value."""
  o = config.sweep
  values = itertools.product(
    o.learning_rate or (config.optimizer.learning_rate,),
    o.batch_size or (config.data.batch_size,),
    o.epochs or (config.train.epochs,),
  )
  return [Setting(*x) for x in values]


def run_folder(setting: Setting, seed: int) -> str:
  """Returns the name of a run's folder, such as "lr3e-05-b16-e3-seed0"."""
  rate, size, epochs = setting
  return f"lr{rate:g}-b{size}-e{epochs:g}-seed{seed}"


def summarise_runs(
  setting: Setting, results: Sequence[Mapping]
) -> dict[str, Any]:
  """Returns the summary of a setting's runs, as sweep.json has it.

  It has the "setting"; the "values" of the task's metric in the order of the
  seeds, their "mean", "stddev" (of a sample; 0 for one run) and "median"; how
  many runs are "degenerate", as their training loss never fell; and
  "also_scored", the first three for each of data.also_score.
  """
  metric = results[0]["best_metric"]
  scores = _scores(results, metric)
  return {
    "setting": setting._asdict(),
    **scores,
    "median": float(np.median(scores["values"])),
    "degenerate": sum(bool(r["degenerate"]) for r in results),
    "also_scored": {
      name: _scores([r["also_scored"][name] for r in results], metric)
      for name in results[0].get("also_scored", {})
    },
  }


def _scores(results: Sequence[Mapping], metric: str) -> dict[str, Any]:
  values = [float(r[metric]) for r in results]
  with np.errstate(invalid="ignore"):  # Of infinite values.
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
  mean = float(np.mean(values))
  return {"values": values, "mean": mean, "stddev": float(deviation)}


def _rank(value: float) -> float:
  return -math.inf if math.isnan(value) else value  # NaN is never the best.


def format_table(summaries: Sequence[Mapping], metric: str) -> list[str]:
  """Returns a Markdown table with a row for each setting.

  For the files of data.also_score, it has the mean and deviation of the runs;
  the best run is chosen without them.
  """
  columns = ["learning rate", "batch", "epochs", "runs", f"{metric}: mean"]
  columns += ["sd", "median", "best", "degenerate"]
  for name in summaries[0]["also_scored"] if summaries else ():
    columns += [f"{pathlib.Path(name).name}: mean", "sd"]
  rows = []
  for x in summaries:
    rate, size, epochs = x["setting"].values()
    row = [f"{rate:g}", size, f"{epochs:g}", len(x["values"])]
    best = max(x["values"], key=_rank)
    figures = (x["mean"], x["stddev"], x["median"], best)
    row += [f"{figure:.4f}" for figure in figures]
    row.append(x["degenerate"])
    for scores in x["also_scored"].values():
      row += [f"{scores['mean']:.4f}", f"{scores['stddev']:.4f}"]
    rows.append(row)
  return console.markdown_table(columns, rows)
