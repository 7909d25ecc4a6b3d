"""Reads some arrays of a step, by this process alone."""

import os
from collections.abc import Iterable
from pathlib import Path

import jax
import numpy as np

from maskedlm.training.checkpoints.quiet_orbax import ocp


def read_arrays(folder: str | os.PathLike, names: Iterable[str]) -> dict:
  """Returns the named arrays of an item of a step; other hosts are not needed.

  Args:
    folder: the item's, such as WORKDIR/checkpoints/3000/params.
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
    node[leaf] = ocp.RestoreArgs(restore_type=np.ndarray)
  me = jax.process_index()
  alone = ocp.options.MultiprocessingOptions(me, {me})
  with ocp.Checkpointer(
    ocp.PyTreeCheckpointHandler(multiprocessing_options=alone),
    multiprocessing_options=alone,
  ) as checkpointer:
    return checkpointer.restore(
      Path(folder) if isinstance(folder, str) else folder,
      args=ocp.args.PyTreeRestore(
        item=wanted, restore_args=wanted, partial_restore=True
      ),
    )
