"""Divides a batch into microbatches, and joins what is made of them."""

import jax
import jax.numpy as jnp

from maskedlm.core.task import Batch


def split_batch(batch: Batch, count: int) -> Batch:
  """Reshapes [B, ...] to [count, B / count, ...], for each array.

  Rows i, i + count, ... make a microbatch: each device keeps its own.
  """
  return jax.tree.map(
    lambda x: jnp.swapaxes(x.reshape(-1, count, *x.shape[1:]), 0, 1),
    dict(batch),
  )


def join_batch(parts):
  """Returns arrays [count, B / count, ...] as [B, ...]: undoes split_batch."""
  return jax.tree.map(
    lambda x: jnp.swapaxes(x, 0, 1).reshape(-1, *x.shape[2:]), parts
  )
