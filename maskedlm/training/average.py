"""Averages the parameters of several checkpoints.

The mean of a run's last checkpoints (Izmailov et al. 2018, arXiv:1803.05407),
their exponential moving average, and the mean of models fine-tuned from one
start (Wortsman et al. 2022, arXiv:2203.05482) are all weighted sums.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np

from maskedlm.core.errors import CheckpointError
from maskedlm.core.task import Params
from maskedlm.training import sharding
from maskedlm.training.checkpoints.load import LoadedCheckpoint

# Keys of meta["task"] that must be equal, as the architecture must.
_SAME = ("objective", "kind", "about", "options", "length", "generator")


def decay_weights(decay: float, count: int) -> np.ndarray:
  """Returns the weights [count] of an exponential moving average.

  The average a_1 = x_1, a_t = decay * a_(t-1) + (1 - decay) * x_t of x_1, ...,
  x_count is the sum of weights[i] * x_(i+1).
  """
  ages = np.arange(count)[::-1]
  weights = (1 - decay) * decay**ages
  weights[0] = decay ** (count - 1)
  return weights


def average(
  opened: Iterable[tuple[str, LoadedCheckpoint]], weights: Sequence[float]
) -> tuple[Params, dict[str, float]]:
  """Returns the mean parameters of checkpoints, and their mean thresholds.

  Two checkpoints are in memory at a time. The arrays are of numpy, and of the
  first one's types. The thresholds are {} if no checkpoint has any.

  Args:
    opened: (path, checkpoint), one for each weight.
    weights: any positive numbers; they are divided by their sum.

  Raises:
    CheckpointError: two are not of the same model and task.
  """
  shares = np.asarray(weights, np.float64) / np.sum(weights)
  first: Any = None
  total, thresholds = None, dict[str, float]()
  for share, (path, checkpoint) in zip(shares, opened, strict=True):
    types = jax.tree.map(lambda x: x.dtype, checkpoint.params)
    first = first or (path, checkpoint._replace(params=types))
    _check_same(first, (path, checkpoint))
    scaled = jax.tree.map(
      lambda x, s=share: s * np.float64(x), checkpoint.params
    )
    total = scaled if total is None else jax.tree.map(np.add, total, scaled)
    for name, value in checkpoint.meta.get("heldout", {}).items():
      if name.endswith("threshold"):  # Metrics are those of a member alone.
        thresholds[name] = thresholds.get(name, 0.0) + float(share) * value
  params = jax.tree.map(lambda x, like: x.astype(like), total, first[1].params)
  return params, thresholds


def _check_same(
  first: tuple[str, LoadedCheckpoint], other: tuple[str, LoadedCheckpoint]
) -> None:
  """Raises CheckpointError, with what differs, unless they can be averaged."""
  (a_path, a), (b_path, b) = first, other
  new = _facts(b)
  differ = [
    f"{name} {value!r:.60} and {new[name]!r:.60}"
    for name, value in _facts(a).items()
    if value != new[name]
  ]
  if differ:
    raise CheckpointError(
      f"{a_path} and {b_path} can't be averaged: {differ[0]}; expected "
      "checkpoints of one model and task."
    )


def _facts(checkpoint: LoadedCheckpoint) -> dict[str, Any]:
  """Returns what must be equal in all checkpoints of an average."""
  task = checkpoint.meta["task"]
  return {
    "tokenizer": checkpoint.tokenizer.sha256[:12],
    **vars(checkpoint.cfg),
    **{name: task.get(name) for name in _SAME},
    "parameters": sorted(sharding.by_path(checkpoint.params)),
  }
