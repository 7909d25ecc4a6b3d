"""An exponential moving average of the weights, beside them (Polyak averaging).

It changes nothing in training. The loop evaluates it beside the weights, and
`maskedlm average --ema` makes a model of it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from maskedlm.core.task import Params


class MovingAverage(NamedTuple):
  """Functions of a moving average."""

  init: Callable[[Params], Any]  # params -> the average before the first step.
  # (step, average, params after that step) -> the average after it.
  update: Callable[[jax.Array, Any, Params], Any]


def make(decay: float) -> MovingAverage:
  """Returns the moving average with a decay; () instead of arrays if it is 0.

  After step t, from 0, with d = min(decay, (1 + t) / (10 + t)), the average is
  d * average + (1 - d) * params. The smaller decay of the first steps, as in
  TensorFlow's ExponentialMovingAverage, forgets the initial weights.
  """
  if not decay:
    return MovingAverage(lambda params: (), lambda step, average, params: ())

  def update(step, average, params):
    t = step.astype(jnp.float32)
    share = 1 - jnp.minimum(decay, (1 + t) / (10 + t))
    return jax.tree.map(lambda a, p: a + share * (p - a), average, params)

  # A copy: the state is donated, and may not have an array twice.
  return MovingAverage(lambda params: jax.tree.map(jnp.copy, params), update)
