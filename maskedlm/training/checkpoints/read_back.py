"""Checks that what a run saves first can be read.

Orbax may report a save that can't be read, if a file system lists or names
files in a way that it doesn't know.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from maskedlm.core.errors import CheckpointError
from maskedlm.runtime import storage_errors
from maskedlm.training.checkpoints.read_arrays import read_arrays


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

  Raises:
    CheckpointError: they can't be read, or are not those that were saved.
  """
  try:
    for path, saved in sample.items():
      name = path.removeprefix("params/")
      item = "state" if name == path else "params"
      (found,) = jax.tree.leaves(read_arrays(folder / item, [name]))
      if not np.array_equal(found, saved):
        raise ValueError(f"{path} is not as it was saved")
  except Exception as error:  # Orbax and TensorStore raise many types.
    raise CheckpointError(
      f"checkpoint {folder} was saved, but can't be read: "
      f"{storage_errors.reason(error)}. Choose a --workdir on another file "
      "system."
    ) from error
