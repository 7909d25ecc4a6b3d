"""Finds loss spikes: steps whose loss is far above those of the steps before.

A spike is a loss of over train.spike_sigma standard deviations above the mean
of the last WINDOW losses, as in OLMo-core's SkipStepOptimizer (which also skips
losses as far below, and gradient norms). Spikes are in the window too, so where
losses rise for good, only a few steps are taken for spikes: of k equal ones
among constant losses, the next is (WINDOW - k) / sqrt(WINDOW k) standard
deviations away, about 6 for k = 3.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

WINDOW = 128  # Losses, OLMo-core's rolling_interval_length.
LEAST = 64  # Losses without which nothing is a spike.


class Losses(NamedTuple):
  """The losses of the last steps: a part of the state, to resume exactly."""

  values: jax.Array  # [WINDOW] float32; the oldest is overwritten.
  # shape=(), int32: how many there were. Checkpoints have this name.
  count: jax.Array  # type: ignore[assignment]
  spiked: jax.Array  # shape=(), int32: 1 if the last step was a spike.


def init() -> Losses:
  """Returns an empty window: zeros, as checkpoints/state.py expects."""
  zero = jnp.zeros((), jnp.int32)
  return Losses(jnp.zeros(WINDOW, jnp.float32), zero, zero)


def forget(losses: Losses) -> Losses:
  """Empties the window, on the same devices: other text has other losses."""
  return jax.tree.map(lambda x: x * 0, losses)


def add(losses: Losses, loss, is_loss, *, sigma: float) -> Losses:
  """Adds the loss of a step, and tells whether it is a spike.

  Args:
    losses: those before.
    loss: shape=(), float32.
    is_loss: shape=(), bool: whether it is finite, and of any predictions; if
      not, it is neither added nor a spike.
    sigma: standard deviations (of a sample, with n - 1); 0 for no spikes.
  """
  n = jnp.minimum(losses.count, WINDOW)
  filled = jnp.arange(WINDOW) < n
  mean = jnp.sum(jnp.where(filled, losses.values, 0)) / jnp.maximum(n, 1)
  square = jnp.where(filled, jnp.square(losses.values - mean), 0)
  deviation = jnp.sqrt(jnp.sum(square) / jnp.maximum(n - 1, 1))
  is_far = loss - mean > sigma * deviation
  spiked = is_loss & is_far & (losses.count >= LEAST) & (sigma > 0)
  added = losses.values.at[losses.count % WINDOW].set(loss)
  return Losses(
    values=jnp.where(is_loss, added, losses.values),
    count=losses.count + is_loss,
    spiked=spiked.astype(jnp.int32),
  )
