"""Shows the phases of a run: a table, and what changes over its tokens."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.core.task import Task
from maskedlm.pretraining import epochs
from maskedlm.pretraining.predictions import mask_rate
from maskedlm.runtime import console
from maskedlm.training import optimizer
from maskedlm.training import phases as phasing
from maskedlm.training.phases import Phase

NUM_POINTS = 61


class Curve(NamedTuple):
  """A quantity over the run."""

  name: str
  points: list[tuple[int, float]]  # (tokens read, padding included; value).


def curves(phases: Sequence[Phase]) -> list[Curve]:
  """Returns the learning rate and whatever else differs between phases."""
  changing = [_curve("learning rate", phases, rate)]
  for name, value_of in (
    ("rows of a step", lambda phase: phase.config.data.batch_size),
    ("tokens in a row", lambda phase: phase.config.data.length),
    ("mask rate", lambda phase: mask_rate(phase.config.objective)),
    ("weight decay", lambda phase: phase.config.optimizer.weight_decay),
    ("alpha", lambda phase: phase.config.data.alpha),
    ("RoPE theta", lambda phase: phase.config.model.rope_theta),
  ):
    if len({value_of(phase) for phase in phases}) > 1:
      changing.append(_curve(name, phases, _constant(value_of)))
  return changing


def format_table(
  phases: Sequence[Phase], tasks: Sequence[Task] | None
) -> list[str]:
  """Formats the phases, a line for each.

  The tasks are for the epochs; None if there is no corpus yet.
  """
  each_task = [None] * len(phases) if tasks is None else tasks
  return console.table(
    ("from step", "steps", "tokens", "rows", "length", "epochs", "changes"),
    (
      (
        f"{phase.begin:,}",
        f"{phase.end - phase.begin:,}",
        f"{tokens:,}",
        f"{phase.config.data.batch_size:,}",
        f"{phase.config.data.length:,}",
        f"{epochs.count_epochs([phase], [task]):,.3g}" if task else "-",
        phasing.format_changes(phase) or "-",
      )
      for phase, task in zip(phases, each_task, strict=True)
      for tokens in [_tokens(phase)]
    ),
    align=">>>>>><",
  )


def sparkline(curve: Curve) -> str:
  """Draws a curve, from 0 to its maximum, as a line of blocks."""
  tokens, values = zip(*curve.points, strict=True)
  at = np.linspace(0, tokens[-1], NUM_POINTS)
  index = np.searchsorted(tokens, at, side="right") - 1
  top = max(values) or 1.0
  return "".join("▁▂▃▄▅▆▇█"[round(7 * values[i] / top)] for i in index)


def bounds(curve: Curve) -> tuple[float, float]:
  """Returns the smallest and the largest value of a curve."""
  values = [value for _, value in curve.points]
  return min(values), max(values)


def rate(phase: Phase) -> Callable:
  """Returns the function from steps of a phase to their learning rates."""
  first, count = phase.rates
  schedule = optimizer.make_schedule(phase.config.optimizer, count)
  return lambda step: schedule(step - first)


def _constant(value_of: Callable[[Phase], float]) -> Callable:
  return lambda phase: lambda steps: np.full(len(steps), value_of(phase))


def _curve(
  name: str, phases: Sequence[Phase], function_of: Callable[[Phase], Callable]
) -> Curve:
  """Returns the curve of a function, given as phase -> (steps -> values)."""
  total = sum(_tokens(phase) for phase in phases)
  points: list[tuple[int, float]] = []
  read = 0
  for phase in phases:
    number = max(round(NUM_POINTS * _tokens(phase) / total), 2)
    steps = np.linspace(phase.begin, phase.end - 1, number).astype(int)
    first, count = phase.rates
    peak = first + optimizer.warmup_steps(phase.config.optimizer, count)
    if phase.begin <= peak < phase.end:
      steps = np.append(steps, peak)
    steps = np.unique(steps)
    values = np.asarray(function_of(phase)(steps))
    at = read + (steps - phase.begin) * phasing.tokens_of_step(phase)
    points += zip(at.tolist(), values.tolist(), strict=True)
    read += _tokens(phase)
  return Curve(name, points)


def _tokens(phase: Phase) -> int:
  return (phase.end - phase.begin) * phasing.tokens_of_step(phase)
