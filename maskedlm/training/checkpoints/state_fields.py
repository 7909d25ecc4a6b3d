"""The fields of a training state that a checkpoint has, of any version."""

from collections.abc import Collection
from typing import Any

import jax
import jax.numpy as jnp

# Those that older checkpoints lack, and that begin as zeros.
LATER = ("losses",)


def beside_params(state: Any) -> dict[str, Any]:
  """Returns the fields of a state that are stored beside its parameters.

  Those without arrays are left out, so that a state with a new field can be
  read from checkpoints that are older than it.
  """
  fields = state._asdict()
  stored = {k: v for k, v in fields.items() if jax.tree.leaves(v)}
  return {**stored, "params": ()}


def leave_out(like: Any, saved: Collection[str]) -> tuple[Any, dict[str, Any]]:
  """Returns a state without the fields that a checkpoint lacks, and zeros.

  Args:
    like: a NamedTuple of jax.ShapeDtypeStructs with shardings.
    saved: the paths of the arrays in the checkpoint, such as "losses/count".

  Returns:
    (like, with () for those of LATER that are lacking; {field: zeros})
  """
  lacking = [
    field
    for field in LATER
    if field in like._fields
    and not any(name.startswith(f"{field}/") for name in saved)
  ]
  zeros = {
    field: jax.tree.map(
      lambda x: jnp.zeros(x.shape, x.dtype, device=x.sharding),
      getattr(like, field),
    )
    for field in lacking
  }
  return like._replace(**dict.fromkeys(lacking, ())), zeros
