"""Handles measured numbers, any of which may be infinite or not a number."""

import json
import math
from typing import Any

from maskedlm.core.parse_json import parse_json


def to_json(value: Any, *, indent: int | None = None, ascii: bool = False):
  """Returns JSON text; numbers that are not finite are null.

  JSON has no such numbers: Python's NaN and Infinity are errors for others. If
  `ascii`, other characters are written as escapes.
  """
  try:
    return json.dumps(value, indent=indent, ensure_ascii=ascii, allow_nan=False)
  except ValueError:
    value = _without_nan(value)
    return json.dumps(value, indent=indent, ensure_ascii=ascii, allow_nan=False)


def _without_nan(value: Any) -> Any:
  if isinstance(value, float):
    return value if math.isfinite(value) else None
  if isinstance(value, dict):
    return {name: _without_nan(item) for name, item in value.items()}
  if isinstance(value, list | tuple):
    return [_without_nan(item) for item in value]
  return value


def parse_line(line: str | bytes) -> tuple[int, dict[str, float]]:
  """Returns the step and the values of a line of metrics.jsonl; NaN for null.

  Raises:
    ValueError: it is not such a line, or is still being written.
  """
  try:
    values = parse_json(line)
    step = int(float(values.pop("step")))  # Not one of 1,000 digits.
    numbers = {
      n: math.nan if x is None else float(x) for n, x in values.items()
    }
    return step, numbers
  except (KeyError, TypeError, AttributeError, OverflowError) as error:
    raise ValueError(f"not a line of metrics: {error!r}") from error


def perplexity(loss: float) -> float:
  """Returns exp(loss) of a loss in nats; infinity if it is too large.

  >>> round(perplexity(4.226), 1), perplexity(1e6)
  (68.4, inf)
  """
  try:
    return math.exp(loss)
  except OverflowError:
    return math.inf
