"""A run's own train step, compiled for chips that aren't here.

libtpu (extra `tpu`) compiles ahead of time on any x86 machine, and raises the
error of memory that the chip would. JAX's CUDA plugin (extra `cuda`) compiles
too, whatever memory it takes (gpus.py). Nothing is executed.
"""

import importlib.util
import os
import re
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np
from ml_collections import ConfigDict

from maskedlm import objectives
from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Task
from maskedlm.data.batches import batching, placeholder_corpus
from maskedlm.planning import gpus
from maskedlm.planning import memory as footprint
from maskedlm.planning.topologies import Topology
from maskedlm.runtime import xla_flags
from maskedlm.training import sharding
from maskedlm.training import step as steps

# libtpu reads these when it is loaded. It must not look for the TPU of this
# machine, ask for its metadata, nor keep others from loading it.
_ENVIRONMENT = {
  "TPU_SKIP_MDS_QUERY": "1",
  "TPU_ACCELERATOR_TYPE": "v5litepod-16",
  "TPU_WORKER_HOSTNAMES": "localhost",
  "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}


class Pieces(NamedTuple):
  """Bytes on one chip."""

  parameters: int
  optimizer: int  # Moments and counters.
  batch: int
  temporaries: int  # Activations, gradients.
  program: int
  peak: int  # The most that is in use at once, by XLA's account.


class Step(NamedTuple):
  """A step to plan: what is compiled, or counted."""

  config: ConfigDict
  task: Task
  mesh: jax.sharding.Mesh
  program: steps.OverMesh
  batch: dict[str, jax.ShapeDtypeStruct]
  shape: batching.BatchShape  # Of the phase.


class Compiled(NamedTuple):
  """What the compiler says."""

  pieces: Pieces
  text: str  # HLO.


# What else helps, of a TPU or not.
_REMEDY = {
  True: "Flags in LIBTPU_INIT_ARGS can cause it; else try fewer --rows, "
  "model.remat=full or model.unroll=False.",
  False: f"A part of CUDA may be missing ({gpus.INSTALL} brings all), or flags "
  "in XLA_FLAGS cause it.",
}


class TooLarge(NamedTuple):
  """The chip's memory is not enough."""

  needed: int  # Bytes, where the compiler gave up.
  limit: int


def can_compile(topology: Topology) -> bool:
  """Else it is estimated: GPUs without the plugin. TPUs need libtpu."""
  return topology.is_tpu or gpus.can_compile()


def devices(topology: Topology) -> list[Any]:
  """Devices to compile for; they can hold nothing.

  Raises:
    ConfigError: the compiler isn't installed, or doesn't know the topology.
  """
  return (tpu_devices if topology.is_tpu else gpus.gpu_devices)(topology)


def tpu_devices(topology: Topology) -> list[Any]:
  """Those of a TPU's slice.

  Raises:
    ConfigError: libtpu isn't installed, or doesn't know the topology.
  """
  if importlib.util.find_spec("libtpu") is None:
    raise ConfigError(
      f"--topology={topology.name} is compiled by libtpu, which isn't "
      "installed: pip install 'maskedlm[tpu]'. It needs no TPU."
    )
  from jax.experimental import topologies

  os.environ.update(
    {k: v for k, v in _ENVIRONMENT.items() if k not in os.environ}
  )
  xla_flags.add(os.environ, "tpu")  # As in the run itself.
  layout = topology.chip.layout
  options = {"chip_config_name": layout} if layout else {}
  try:
    found = topologies.get_topology_desc(
      platform="tpu", topology_name=topology.name, **options
    )
  except jax.errors.JaxRuntimeError as error:
    raise ConfigError(
      f"--topology={topology.name}: libtpu can't compile for it: "
      f"{str(error).splitlines()[0]}"
    ) from None
  return list(found.devices)


def make_step(config: ConfigDict, devices, phase: int) -> Step:
  """The step of a phase of config's run (0, or 1 for the longer rows).

  Raises:
    ConfigError: the mesh doesn't fit the devices, the batch not the mesh.
  """
  mesh = sharding.make_mesh(config.mesh, devices)
  task = objectives.make(
    config, placeholder_corpus.make_corpus(config.tokenizer)
  )
  at = (config.train.num_steps - 1) * phase
  shape = batching.shape_at(at, config.train.num_steps, config.data)
  sharding.check_batch(shape.num_rows, config.train.accumulate, mesh)
  rows = sharding.rows(mesh)
  batch = {
    name: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=rows)
    for name, x in task.batch_at("train", at).items()
  }
  program = steps.over_mesh(config, task, mesh)
  return Step(config, task, mesh, program, batch, shape)


def state_of(step: Step) -> steps.TrainState:
  """The state's arrays: shapes and shardings."""
  return sharding.abstract(step.program.init, step.program.shardings)


def held(step: Step, mesh) -> tuple[int, int, int]:
  """Bytes on one chip: of parameters, of the optimizer's state, of a batch."""
  state = state_of(step)
  parameters = footprint.bytes_per_device(state.params, mesh)
  whole = footprint.bytes_per_device(state, mesh)
  parts = mesh.shape["data"] * mesh.shape["fsdp"]
  batch = sum(x.size * x.dtype.itemsize for x in step.batch.values()) // parts
  return parameters, whole - parameters, batch


def compile_step(step: Step, topology: Topology) -> Compiled | TooLarge:
  """Compiles it. Takes minutes.

  Raises:
    ConfigError: the compiler gives up, for another reason than HBM.
  """
  options = None if topology.is_tpu else gpus.compiler_options()
  try:
    with jax.set_mesh(step.mesh):  # Says what it is compiled for.
      lowered = step.program.step.lower(state_of(step), step.batch)
    with warnings.catch_warnings():
      # JAX's cache keeps a program for GPUs, but can't read it back without
      # one: it is compiled anew.
      warnings.filterwarnings("ignore", "Error reading persistent compilation")
      compiled = lowered.compile(compiler_options=options)
  except RuntimeError as error:  # JAX's own (cuDNN is missing), or XLA's.
    found = out_of_memory(str(error))
    if found is None:
      kind = step.mesh.devices.flat[0].device_kind
      raise ConfigError(
        f"the compiler gives up on this step for {kind}: "
        f"{str(error).splitlines()[0][:200]} {_REMEDY[topology.is_tpu]}"
      ) from None
    return found
  memory = compiled.memory_analysis()
  program = memory.generated_code_size_in_bytes
  if topology.is_tpu:
    # Not temp_size_in_bytes: on TPUs that is more than what is in use at once,
    # and steps compile whose arguments and it exceed the chip's memory.
    used = memory.peak_memory_in_bytes
  else:
    # Here it is: temporaries are one piece of memory, whatever is in use of it.
    new = memory.output_size_in_bytes - memory.alias_size_in_bytes
    used = memory.argument_size_in_bytes + memory.temp_size_in_bytes + new
  temporaries = used - memory.argument_size_in_bytes
  peak = used + program
  if not topology.is_tpu and peak > available(topology):
    return TooLarge(peak, available(topology))
  pieces = Pieces(*held(step, step.mesh), temporaries, program, peak)
  return Compiled(pieces, compiled.as_text())


def available(topology: Topology) -> int:
  """Bytes of a chip that a run can have.

  Of a TPU all; the compiler knows what it needs itself.
  """
  share = 1.0 if topology.is_tpu else gpus.memory_share()
  return int(share * topology.chip.hbm_bytes)


# As libtpu writes it, in one of two places of the compiler.
_OUT_OF_MEMORY = (
  r"memory required for .* \(([\d.]+)([KMGT]?)\) exceeds available HBM "
  r"\(([\d.]+)([KMGT]?)\)",
  r"Used ([\d.]+)([KMGT]?) of ([\d.]+)([KMGT]?) hbm",
)


def out_of_memory(message: str) -> TooLarge | None:
  """The compiler's error -> (needed, limit); None if it is another error."""
  unit = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
  for pattern in _OUT_OF_MEMORY:
    if found := re.search(pattern, message):
      needed, limit = (
        int(float(found[i]) * unit[found[i + 1]]) for i in (1, 3)
      )
      return TooLarge(needed, limit)
  return None


def coordinates(
  mesh: jax.sharding.Mesh, topology: Topology
) -> list[tuple[int, ...]]:
  """Where each device of the mesh lies on the torus.

  Devices that don't say (a CPU's) lie in order.
  """
  places = np.ndindex(*topology.shape)
  return [
    tuple(getattr(device, "coords", place))
    for device, place in zip(mesh.devices.flat, places, strict=False)
  ]
