"""Counts the FLOPs of the matmuls that a step executes, with recomputation.

They are counted in the traced step, after dropping unused parts. The model's
FLOPs, by which MFU is defined, are in modeling/flops.py.
"""

import math

import jax
from jax.extend.core import jaxprs_in_params
from jax.interpreters import partial_eval


def count_executed(
  step, mesh: jax.sharding.Mesh, *arguments, rounds: int = 1
) -> float:
  """Returns the FLOPs of a jitted function's matmuls on all devices together.

  A conditional counts as its most expensive branch. The body of jax.shard_map
  is executed by each device.

  Args:
    step: the function.
    mesh: the mesh for tracing.
    *arguments: arguments of step: arrays, or their shapes and dtypes.
    rounds: iterations of a loop without a fixed number.
  """
  with jax.set_mesh(mesh):
    closed = jax.make_jaxpr(step)(*arguments)
  used = [True] * len(closed.jaxpr.outvars)
  jaxpr, _ = partial_eval.dce_jaxpr(closed.jaxpr, used)
  return _count(jaxpr, rounds)


def _count(jaxpr, rounds: int) -> float:
  return sum(_cost(eqn, rounds) for eqn in jaxpr.eqns)


def _cost(eqn, rounds: int) -> float:
  name, params = eqn.primitive.name, eqn.params
  if name == "dot_general":
    (contracted, _), _ = params["dimension_numbers"]
    left = eqn.invars[0].aval.shape
    inner = math.prod(left[i] for i in contracted)
    return 2.0 * inner * math.prod(eqn.outvars[0].aval.shape)
  if name.startswith("dot_product_attention_"):  # cuDNN's [B, L, H, K].
    matmuls = 2 if "fwd" in name else 5
    query, key = (x.aval.shape for x in eqn.invars[:2])
    return matmuls * 2.0 * math.prod(query) * key[1]
  bodies = [_count(jaxpr, rounds) for jaxpr in jaxprs_in_params(params)]
  if name == "scan":
    return params["length"] * sum(bodies)
  if name == "while":
    return rounds * sum(bodies)
  if name == "cond":
    return max(bodies, default=0.0)
  if name == "shard_map":
    return params["mesh"].size * sum(bodies)
  if name == "pallas_call":  # The body is that of one block of the grid.
    return math.prod(params["grid_mapping"].grid) * sum(bodies)
  return sum(bodies)
