"""Describes, checks and loads the state of a run that a checkpoint holds."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from maskedlm.core.errors import CheckpointError
from maskedlm.training.checkpoints import manifest
from maskedlm.training.checkpoints.arrays import read_tree
from maskedlm.training.sharding import by_path

State = Any  # A NamedTuple of pytrees; one field is `params`, nested dicts.
LATER = "losses"  # A field that older checkpoints lack, zeros at first.


def beside_params(state: Any) -> dict[str, Any]:
  """Returns the fields of a state that are stored beside its parameters.

  Those without arrays are left out, so that a state with a new field can be
  read from checkpoints that are older than it.
  """
  fields = state._asdict()
  stored = {k: v for k, v in fields.items() if jax.tree.leaves(v)}
  return {**stored, "params": ()}


def describe(state: State) -> dict[str, str]:
  """Returns {path: "float32[5,13]"} of arrays or ShapeDtypeStructs."""
  return {
    path: f"{x.dtype}[{','.join(map(str, x.shape))}]"
    for path, x in by_path(state).items()
  }


@jax.jit
def _all_finite(arrays):
  return [jnp.isfinite(x).all() for x in arrays]


def check_finite(state: State, step: int) -> None:
  """Raises CheckpointError if a value of the state is not finite."""
  leaves = by_path(state)
  inexact = [p for p in leaves if jnp.issubdtype(leaves[p].dtype, jnp.inexact)]
  finite = jax.device_get(_all_finite([leaves[path] for path in inexact]))
  bad = [path for path, ok in zip(inexact, finite, strict=True) if not ok]
  if bad:
    raise CheckpointError(
      f"step {step} was not saved: {len(bad)} arrays, of which {bad[0]} is the "
      "first, have values that are not finite. Resume from the checkpoint "
      "before it."
    )


def rankable(metric: float | None) -> float | None:
  """Returns the metric, or None if it is not finite and can't be ranked."""
  return None if metric is None or not math.isfinite(metric) else float(metric)


def _check_same_arrays(saved: dict, wanted: dict, path: Path) -> None:
  """Raises CheckpointError if an array has another dtype or shape than wanted.

  Orbax would cast silently, or report a shape in a page of text.
  """
  for name in [*wanted, *saved]:
    if saved.get(name) != wanted.get(name):
      raise CheckpointError(
        f"checkpoint {path} doesn't fit: {name} is {saved.get(name, 'absent')} "
        f"there, {wanted.get(name, 'absent')} here. Use the config that it was "
        "saved with, or another --workdir."
      )


def load_state(
  path: Path, like: State, check: Callable[[dict], None]
) -> tuple[State, dict]:
  """Loads (state, meta) from the folder of a step; see Checkpoints.restore."""
  record = manifest.read_record(path)
  check(manifest.meta(record))
  later = {}
  is_saved = any(name.startswith(f"{LATER}/") for name in record["arrays"])
  if hasattr(like, LATER) and not is_saved:
    later[LATER] = jax.tree.map(
      lambda x: jnp.zeros(x.shape, x.dtype, device=x.sharding),
      getattr(like, LATER),
    )
    like = like._replace(**{LATER: ()})
  _check_same_arrays(record["arrays"], describe(like), path)
  beside = read_tree(path / "state", beside_params(like))
  fields = {
    **beside,
    "params": read_tree(path / "params", like.params),
    **later,
  }
  return like._replace(**fields), manifest.meta(record)
