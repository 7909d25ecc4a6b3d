"""Reads arrays of a step; each host does so by itself.

Orbax's own `load` has barriers, which it numbers by how often a host loaded
something: after host 0 alone read a file, all hosts would wait for each other
in vain. So its handler is called, which reads as `load` does, without them.
"""

import asyncio
import concurrent.futures
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from etils import epath

from maskedlm.training.checkpoints.quiet_orbax import ocp


def read_tree(folder: str | os.PathLike, like: Any) -> Any:
  """Returns the arrays of an item of a step, or some of them.

  Args:
    folder: the item's, such as WORKDIR/checkpoints/3000/params.
    like: a pytree, with a jax.ShapeDtypeStruct with a sharding for each array
      that is wanted on devices, and np.ndarray for others.
  """
  context = ocp.Context()
  context.pytree.loading.partial_load = True
  handler = ocp.handlers.PyTreeHandler(context=context)

  async def load():
    return await (await handler.load(epath.Path(folder), like))

  # In a thread, as a notebook has an event loop in this one.
  with concurrent.futures.ThreadPoolExecutor(1) as pool:
    return pool.submit(asyncio.run, load()).result()


def read_arrays(folder: str | os.PathLike, names: Iterable[str]) -> dict:
  """Returns the named arrays of an item of a step.

  Args:
    folder: as in read_tree.
    names: paths of arrays, such as "encoder/embeddings/norm/scale".

  Returns:
    Nested dicts of numpy arrays.
  """
  wanted: dict = {}
  for name in names:
    *parents, leaf = name.split("/")
    node = wanted
    for parent in parents:
      node = node.setdefault(parent, {})
    node[leaf] = np.ndarray
  return read_tree(folder, wanted)
