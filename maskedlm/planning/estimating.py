"""What a step takes, worked out on paper: for chips it isn't compiled for.

Rougher than compiling.py: what XLA would fuse, keep or send at once is unknown.
"""

import math
from collections.abc import Mapping

import jax
import numpy as np
from ml_collections import ConfigDict

from maskedlm import inspect, sharding
from maskedlm.planning.collectives import Collective
from maskedlm.planning.compiling import Pieces, Step, state_of
from maskedlm.planning.traffic import Traffic


def pieces(step: Step, mesh, rows: int) -> Pieces:
  """Bytes on one chip, of `rows` rows at a time.

  Temporaries: activations (inspect.activation_bytes), the gradient, and the new
  moments, which are held until it is known whether the step was finite.
  """
  state = state_of(step)
  parameters = inspect.bytes_per_device(state.params, mesh)
  whole = inspect.bytes_per_device(state, mesh)
  parts = mesh.shape["data"] * mesh.shape["fsdp"]
  batch = sum(x.size * x.dtype.itemsize for x in step.batch.values()) // parts
  kept = activations(step.config, rows, step.shape.length)
  temporaries = kept + parameters + whole - parameters
  return Pieces(
    parameters,
    whole - parameters,
    batch,
    temporaries,
    0,
    whole + batch + temporaries,
  )


def activations(config: ConfigDict, rows: int, length: int) -> int:
  """Bytes that backward keeps of `rows` rows of so many tokens."""
  config = config.copy_and_resolve_references()
  config.data.length = length
  return inspect.activation_bytes(config, rows)


def traffic(sizes: Pieces) -> Traffic:
  """Activations are written once and read twice; the state is read, written."""
  state = sizes.parameters + sizes.optimizer
  return Traffic(0, 3 * sizes.temporaries + 2 * state)


def collectives(step: Step, mesh: Mapping[str, int]) -> list[Collective]:
  """What data parallelism and fsdp send; of `tensor` nothing is estimated.

  Gradients are summed in model.dtype, as XLA does on TPUs. With fsdp a layer's
  parameters are gathered forward and backward, its gradient scattered.
  """
  params = state_of(step).params
  layers = rest = 0
  for path, x in jax.tree_util.tree_flatten_with_path(params)[0]:
    if "layers/" in sharding.path_of(path):
      layers += math.prod(x.shape)
    else:
      rest += math.prod(x.shape)
  N = step.config.model.num_layers
  width = 2 if step.config.model.dtype == "bfloat16" else 4
  dtype = ("bf16" if width == 2 else "f32",)
  ids = np.arange(math.prod(mesh.values())).reshape(tuple(mesh.values()))
  along = {
    "data": tuple(map(int, ids[:, 0, 0])),
    "fsdp": tuple(map(int, ids[0, :, 0])),
  }

  def send(op, axis, size, trips):
    return Collective(op, axis, size, trips, False, dtype, (), along[axis])

  found = []
  shards = mesh["fsdp"]
  if shards > 1:
    layer = layers * width // N
    for op in ("all-gather", "all-gather", "reduce-scatter"):
      found.append(send(op, "fsdp", layer, (N,)))
    found += [
      send("all-gather", "fsdp", rest * width, ()),
      send("reduce-scatter", "fsdp", rest * width, ()),
    ]
  if mesh["data"] > 1:
    found += [
      send("all-reduce", "data", layers * width // N // shards, (N,)),
      send("all-reduce", "data", rest * width // shards, ()),
    ]
  return found
