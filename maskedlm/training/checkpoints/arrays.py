"""Reads and writes the arrays of a step, by Orbax.

Orbax logs each save, and after a failed save the writes still running print
their tracebacks. Its errors are raised anyway, and reported in one line; so
this module silences it.

Orbax's own `load` has barriers, which it numbers by how often a host loaded
something: after host 0 alone read a file, all hosts would wait for each other
in vain. So its handler is called, which reads as `load` does, without them.
"""

import asyncio
import concurrent.futures
import functools
import glob
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from etils import epath
from flax import traverse_util

from maskedlm.core.errors import CheckpointError
from maskedlm.runtime import storage_errors

try:
  from orbax.checkpoint import v1 as ocp
except ImportError:  # From 1.0.0 on, the package itself has this interface.
  import orbax.checkpoint as ocp


def _not_orbax(record: logging.LogRecord) -> bool:
  return "orbax" not in record.pathname + record.getMessage()


def _not_closed_loop(unraisable, report=sys.unraisablehook) -> None:
  if str(unraisable.exc_value) != "Event loop is closed":
    report(unraisable)


logging.getLogger("absl").addFilter(_not_orbax)
logging.getLogger("asyncio").addFilter(_not_orbax)
sys.unraisablehook = _not_closed_loop

_Path = type(epath.Path("."))


@functools.wraps(_Path.glob)
def _glob(self, pattern, glob_pattern=_Path.glob):
  return glob_pattern(_Path(glob.escape(os.fspath(self))), pattern)


# etils takes the folder's own name for a part of the pattern: in "a[1]"
# Orbax finds none of the files that it has to merge, and says that it saved.
_Path.glob = _glob


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
  """Returns the named arrays of an item of a step, nested dicts of numpy.

  A name is a path, such as "encoder/embeddings/norm/scale"; the folder is as in
  read_tree.
  """
  wanted = dict.fromkeys(names, np.ndarray)
  return read_tree(folder, traverse_util.unflatten_dict(wanted, sep="/"))


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


def sample_of(arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
  """Returns copies of the step and of the smallest parameter, by path.

  Args:
    arrays: the state's arrays by path, "params/..." for parameters. Arrays of
      which other hosts hold a part are left out.
  """
  known = {
    path: x
    for path, x in arrays.items()
    if getattr(x, "is_fully_addressable", True)
    or getattr(x, "is_fully_replicated", True)
  }
  params = [path for path in known if path.startswith("params/")]
  smallest = sorted(params, key=lambda path: known[path].size)[:1]
  return {
    path: np.array(known[path]) for path in ("step", *smallest) if path in known
  }


def check_readable(folder: Path, sample: Mapping[str, np.ndarray]) -> None:
  """Reads the arrays of a sample from the folder of a step.

  Orbax may report a save that can't be read, if a file system lists or names
  files in a way that it doesn't know. So the first save of a run is read back.

  Raises:
    CheckpointError: they can't be read, or are not those that were saved.
  """
  try:
    for path, saved in sample.items():
      name = path.removeprefix("params/")
      item = "state" if name == path else "params"
      (array,) = jax.tree.leaves(read_arrays(folder / item, [name]))
      if not np.array_equal(array, saved):
        raise ValueError(f"{path} is not as it was saved")
  except Exception as error:  # Orbax and TensorStore raise many types.
    raise CheckpointError(
      f"checkpoint {folder} was saved, but can't be read: "
      f"{storage_errors.reason(error)}. Choose a --workdir on another file "
      "system."
    ) from error
