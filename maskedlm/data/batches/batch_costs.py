"""Measures padding, attended pairs and cost of training batches."""

import functools
from collections.abc import Callable, Iterable

import numpy as np


def padding_share(batch_at, split: str, steps: Iterable[int]) -> float:
  """Returns the share of positions that are padding in these steps' batches."""
  real = total = 0
  for step in steps:
    segment_ids = batch_at(split, step)["segment_ids"]
    real += int(np.count_nonzero(segment_ids))
    total += segment_ids.size
  return 1 - real / total


def format_padding(share: float, option: str = "", other: float = 0.0) -> str:
  """Returns a line with a padding_share, and with the one under `option`."""
  line = f"padding: {share:.1%} of the positions"
  return f"{line}; {other:.1%} with {option}" if option else line


def attended_pairs(segment_ids) -> float:
  """Returns the mean number of attending position pairs per row.

  This is the sum of the squared sizes of a row's segments, without padding:
  the attention that has to be computed. `segment_ids` is int [b, L].
  """
  b, num = len(segment_ids), segment_ids.max() + 1
  rows = np.arange(b)[:, None] * num
  sizes = np.bincount((rows + segment_ids).reshape(-1), minlength=b * num)
  return float(np.sum(sizes.reshape(b, num)[:, 1:] ** 2) / b)


def step_cost(
  row_cost: Callable[[float | None], float],
  batch_at: Callable,
  batch_size: int,
  *,
  packed: bool,
) -> Callable[[int], float]:
  """Returns a function from a step to the cost of all its rows, on all hosts.

  `row_cost` returns the cost of a row, given its attended pairs, or None if
  every position attends to all. Rows of several segments (`packed`) are all
  counted with the pairs of the first batch.
  """

  @functools.cache
  def cost_of_each() -> float:
    pairs = None
    if packed:
      pairs = attended_pairs(batch_at("train", 0)["segment_ids"])
    return batch_size * row_cost(pairs)

  return lambda step: cost_of_each()
