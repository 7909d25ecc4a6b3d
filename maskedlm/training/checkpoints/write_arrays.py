"""Writes the arrays of a step in the background."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from maskedlm.training.checkpoints.quiet_orbax import ocp


def write_arrays(
  folder: str | os.PathLike, items: Mapping[str, Any]
) -> Callable[[], None]:
  """Starts to write arrays; all hosts do so together.

  Args:
    folder: of a step. It has its name when its files are complete, and replaces
      one that is there, as another host may see late that it was discarded.
    items: {name of an item: pytree of arrays}, which may be donated at once.

  Returns:
    A function that waits until the files are complete, and raises what failed.
  """
  context = ocp.Context()
  # With any limit, an array is written when it is compressed; without one, a
  # host keeps all that it writes in memory until the last is.
  context.memory.write_concurrent_bytes = 96_000_000_000
  # Devices that have the same array write a slice of it each. That is a program
  # to compile for every shape and device, which small arrays aren't worth.
  context.array.saving.min_slice_bytes_for_replica_parallel = 2**20
  # What Orbax documents as its default; 0.12.8 loses it on the way.
  on_gpu = jax.default_backend() == "gpu"
  context.array.saving.enable_pinned_host_transfer = on_gpu
  arrays = jax.tree.map(  # Orbax refuses numpy's scalars.
    lambda x: np.asarray(x) if isinstance(x, np.generic) else x, dict(items)
  )
  with context:
    started = ocp.save_checkpointables_async(folder, arrays, overwrite=True)
  return started.result
