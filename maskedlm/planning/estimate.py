"""Estimates a step's memory and traffic without compiling it.

This is rougher than compile.py, since what XLA would fuse, keep or send at once
is unknown.
"""

import math
from collections.abc import Mapping

import numpy as np

from maskedlm.planning import memory
from maskedlm.planning.collectives import Collective
from maskedlm.planning.compile import Pieces, Step
from maskedlm.planning.memory_traffic import Traffic
from maskedlm.pretraining.config import PretrainConfig
from maskedlm.training import sharding


def estimate_pieces(
  config: PretrainConfig, held: tuple[int, int, int], rows: int, **machine
) -> Pieces:
  """Estimates the bytes on one chip, with `rows` rows at a time.

  Temporaries are activations (memory.activation_bytes) and the gradient; with
  several microbatches also the sum of their gradients.

  Args:
    config, rows, **machine: as for memory.activation_bytes.
    held: bytes of the parameters, the optimizer state and the batch, as
      compile.held_bytes returns them.
  """
  parameters, optimizer, batch = held
  activations = memory.activation_bytes(
    config, rows, config.data.length, **machine
  )
  gradients = 2 if config.train.accumulate > 1 else 1
  temporaries = activations + gradients * parameters
  peak = parameters + optimizer + batch + temporaries
  return Pieces(parameters, optimizer, batch, temporaries, 0, peak)


def estimate_traffic(sizes: Pieces, accumulate: int) -> Traffic:
  """Estimates the traffic of a step with `accumulate` microbatches.

  Temporaries are written once and read twice in each microbatch; the state is
  read and written once.
  """
  state = sizes.parameters + sizes.optimizer
  return Traffic(0, 3 * accumulate * sizes.temporaries + 2 * state)


def estimate_collectives(
  step: Step, mesh: Mapping[str, int]
) -> list[Collective]:
  """Estimates the collectives of data parallelism and fsdp, not of `tensor`.

  Gradients are summed in model.dtype, as XLA does on TPUs. With fsdp a layer's
  parameters are gathered in the forward and the backward pass, and its gradient
  is scattered; the other parameters are gathered (sharding.gather) once a step,
  and their gradient is summed. All but that gather happen in each microbatch.
  """
  params = step.program.state.params
  layers = rest = 0
  for path, x in sharding.by_path(params).items():
    if "layers/" in path:
      layers += math.prod(x.shape)
    else:
      rest += math.prod(x.shape)
  N = step.config.model.num_layers
  width = 2 if step.config.model.dtype == "bfloat16" else 4
  ids = np.arange(math.prod(mesh.values())).reshape(tuple(mesh.values()))
  groups = {
    "data": ids[:, 0, 0],
    "fsdp": ids[0, :, 0],
    "data+fsdp": ids[:, :, 0].ravel(),
  }
  A = step.config.train.accumulate
  microbatches = (A,) if A > 1 else ()

  def send(op, axis, size, trips):
    group = tuple(map(int, groups[axis]))
    return Collective(op, axis, size, trips, False, (), group)

  layer, rest = layers * width // N, rest * width
  shards = mesh["fsdp"]
  collectives = []
  if shards > 1:
    for op in ("all-gather", "all-gather", "reduce-scatter"):
      collectives.append(send(op, "fsdp", layer, (*microbatches, N)))
    collectives.append(send("all-gather", "fsdp", rest, ()))
  if mesh["data"] > 1:
    collectives.append(
      send("all-reduce", "data", layer // shards, (*microbatches, N))
    )
  if axes := "+".join(axis for axis in ("data", "fsdp") if mesh[axis] > 1):
    collectives.append(send("all-reduce", axes, rest, microbatches))
  return collectives
