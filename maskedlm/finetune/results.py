"""Writes the predictions and figures of a run; tells whether it trained."""

import contextlib
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from maskedlm.core.measured import parse_line, to_json
from maskedlm.finetune import predict
from maskedlm.finetune.contract import Example
from maskedlm.runtime import output_files


def is_degenerate(path: pathlib.Path, every: int) -> bool:
  """Returns whether the loss of the last tenth exceeds 95% of the first loss.

  Failed runs are those that don't train at all (arXiv:2006.04884, section 4).

  Args:
    path: metrics.jsonl. Stops and evaluations add lines to it, so that losses
      are averaged over blocks of `every` steps.
    every: train.log_every.
  """
  blocks: dict[int, list[float]] = {}  # A loss for each step.
  before = 0
  for line in path.read_bytes().splitlines():
    with contextlib.suppress(ValueError):  # A line edited by hand.
      step, values = parse_line(line)
      if "loss" in values:
        block = blocks.setdefault(-(-step // every), [])
        block += [values["loss"]] * (step - before)
      before = step
  losses = [np.mean(block) for block in blocks.values() if block]
  end = losses[-max(len(losses) // 10, 1) :]
  return len(losses) > 1 and not np.mean(end) <= 0.95 * losses[0]


def write_predictions(
  examples: Sequence[Example], predictions: Sequence[dict], path: pathlib.Path
) -> None:
  """Writes each prediction and its FILE:LINE as a line of JSON, atomically."""
  places = map(predict.place_of, examples)
  lines = (
    to_json({**place, **prediction}) + "\n"
    for place, prediction in zip(places, predictions, strict=True)
  )
  output_files.write_text(path, "".join(lines))


def log_result(result: Mapping[str, Any], log: Callable[[str], None]) -> None:
  """Logs the result as indented lines."""
  width = max(20, *map(len, result))
  for name, value in result.items():
    if isinstance(value, Mapping):
      for file, values in value.items():
        log(f"  {file}")
        log_result(values, lambda text: log(f"  {text}"))
    elif isinstance(value, float):
      log(f"  {name:<{width}} {value:.4f}")
    else:
      log(f"  {name:<{width}} {value}")
