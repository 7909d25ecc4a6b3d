"""Fields of a state that older checkpoints lack; they begin as zeros."""

from collections.abc import Collection
from typing import Any

import jax
import jax.numpy as jnp

FIELDS = ("losses",)


def leave_out(like: Any, saved: Collection[str]) -> tuple[Any, dict[str, Any]]:
  """Returns a state without the fields that a checkpoint lacks, and zeros.

  Args:
    like: a NamedTuple of jax.ShapeDtypeStructs with shardings.
    saved: the paths of the arrays in the checkpoint, such as "losses/count".

  Returns:
    (like, with () for those of FIELDS that are lacking; {field: zeros})
  """
  lacking = [
    field
    for field in FIELDS
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
