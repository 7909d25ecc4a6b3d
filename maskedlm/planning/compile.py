"""Compiles a run's own train step for chips that aren't in this machine.

libtpu (extra `tpu`) compiles ahead of time on any x86 machine, and raises the
out-of-memory error that the chip would. JAX's CUDA plugin (extra `cuda`)
compiles without a limit on memory (gpus.py). Nothing is executed.
"""

import importlib.util
import os
import re
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Task
from maskedlm.data.batches import placeholder_corpus
from maskedlm.planning import gpus, memory
from maskedlm.planning.topologies import Topology
from maskedlm.pretraining import objectives
from maskedlm.pretraining.config import PretrainConfig
from maskedlm.runtime import xla_flags
from maskedlm.training import sharding, step_memory
from maskedlm.training import step as steps

# libtpu reads these when it is loaded: it must not look for a TPU in this
# machine, query its metadata, or keep other processes from loading it.
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
  peak: int  # Maximum in use at once, as XLA counts it.


class Step(NamedTuple):
  """A train step to plan, and what it was made from."""

  config: PretrainConfig  # Of the step's phase.
  task: Task
  mesh: jax.sharding.Mesh
  program: steps.OverMesh
  batch: dict[str, jax.ShapeDtypeStruct]


class Compiled(NamedTuple):
  """A compiled step."""

  pieces: Pieces
  text: str  # HLO.


# Whether the target is a TPU -> advice if compiling fails.
_REMEDY = {
  True: "Flags in LIBTPU_INIT_ARGS can cause it; or try fewer --rows, "
  "model.remat=full or model.unroll=False.",
  False: f"A part of CUDA may be missing ({gpus.INSTALL} installs all), or "
  "flags in XLA_FLAGS cause it.",
}


class TooLarge(NamedTuple):
  """A step that exceeds the chip's memory."""

  needed: int  # Bytes, as far as the compiler got.
  limit: int  # Bytes available.


def can_compile(topology: Topology) -> bool:
  """Returns whether steps can be compiled: on GPUs, only with JAX's plugin."""
  return topology.is_tpu or gpus.can_compile()


def devices(topology: Topology) -> list[Any]:
  """Returns the topology's devices to compile for; they can't hold arrays.

  Raises:
    ConfigError: the compiler isn't installed, or doesn't know the topology.
  """
  return (tpu_devices if topology.is_tpu else gpus.gpu_devices)(topology)


def tpu_devices(topology: Topology) -> list[Any]:
  """Returns the devices of a TPU slice.

  Raises:
    ConfigError: libtpu isn't installed, or doesn't know the topology.
  """
  if importlib.util.find_spec("libtpu") is None:
    raise ConfigError(
      f"--topology={topology.name} needs libtpu, which isn't installed: pip "
      "install 'maskedlm[tpu]'. It needs no TPU."
    )
  from jax.experimental import topologies

  os.environ.update(
    {k: v for k, v in _ENVIRONMENT.items() if k not in os.environ}
  )
  xla_flags.set_up(os.environ, "tpu")  # As in the run itself.
  layout = topology.chip.layout
  options = {"chip_config_name": layout} if layout else {}
  try:
    description = topologies.get_topology_desc(
      platform="tpu", topology_name=topology.name, **options
    )
  except jax.errors.JaxRuntimeError as error:
    raise ConfigError(
      f"--topology={topology.name}: libtpu can't compile for it: "
      f"{str(error).splitlines()[0]}"
    ) from None
  return list(description.devices)


def make_step(config: PretrainConfig, devices) -> Step:
  """Returns the train step of a config, which is that of a phase.

  Raises:
    ConfigError: the mesh doesn't fit the devices, or the batch the mesh.
  """
  task = objectives.make_task(
    config, placeholder_corpus.make_corpus(config.tokenizer)
  )
  return step_of_task(config, task, devices)


def step_of_task(config: PretrainConfig, task: Task, devices) -> Step:
  """Returns the step as make_step, for a Task of the config."""
  mesh = sharding.make_mesh(config.mesh, devices)
  sharding.check_batch(config.data.batch_size, config.train.accumulate, mesh)
  rows = sharding.rows(mesh)
  batch = {
    name: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=rows)
    for name, x in task.batch_at("train", 0).items()
  }
  program = steps.over_mesh(config, task, mesh)
  return Step(config, task, mesh, program, batch)


def held_bytes(step: Step, mesh) -> tuple[int, int, int]:
  """Returns bytes on one chip: (parameters, optimizer state, batch)."""
  parameters, optimizer = memory.state_bytes(step.program.state, mesh)
  return parameters, optimizer, memory.batch_bytes(step.batch, mesh)


def compile_step(step: Step, topology: Topology) -> Compiled | TooLarge:
  """Compiles the step, which takes minutes.

  Raises:
    ConfigError: the compiler fails for a reason other than memory.
  """
  options = None if topology.is_tpu else gpus.compiler_options()
  try:
    with jax.set_mesh(step.mesh):  # The target.
      lowered = step.program.step.lower(step.program.state, step.batch)
    with warnings.catch_warnings():
      # JAX's cache stores programs for GPUs but can't read them without one,
      # and compiles again.
      warnings.filterwarnings("ignore", "Error reading persistent compilation")
      compiled = lowered.compile(compiler_options=options)
  except RuntimeError as error:  # JAX's own (cuDNN is missing), or XLA's.
    too_large = parse_out_of_memory(str(error))
    if too_large is None:
      kind = step.mesh.devices.flat[0].device_kind
      raise ConfigError(
        f"compiling this step for {kind} failed: "
        f"{str(error).splitlines()[0][:200]} {_REMEDY[topology.is_tpu]}"
      ) from None
    return too_large
  analysis = compiled.memory_analysis()
  program = analysis.generated_code_size_in_bytes
  used = step_memory.used_bytes(analysis, topology.is_tpu)
  temporaries = used - analysis.argument_size_in_bytes
  peak = used + program
  if not topology.is_tpu and peak > available_bytes(topology):
    return TooLarge(peak, available_bytes(topology))
  pieces = Pieces(*held_bytes(step, step.mesh), temporaries, program, peak)
  return Compiled(pieces, compiled.as_text())


def available_bytes(topology: Topology) -> int:
  """Returns the bytes of a chip that a run can use: on TPUs, all of them."""
  share = 1.0 if topology.is_tpu else gpus.memory_share()
  return int(share * topology.chip.hbm_bytes)


# libtpu's messages, from two places in the compiler.
_OUT_OF_MEMORY = (
  r"memory required for .* \(([\d.]+)([KMGT]?)\) exceeds available HBM "
  r"\(([\d.]+)([KMGT]?)\)",
  r"Used ([\d.]+)([KMGT]?) of ([\d.]+)([KMGT]?) hbm",
)


def parse_out_of_memory(message: str) -> TooLarge | None:
  """Returns the sizes in an out-of-memory error, or None for other errors."""
  unit = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
  for pattern in _OUT_OF_MEMORY:
    if match := re.search(pattern, message):
      needed, limit = (
        int(float(match[i]) * unit[match[i + 1]]) for i in (1, 3)
      )
      return TooLarge(needed, limit)
  return None


def coordinates(
  mesh: jax.sharding.Mesh, topology: Topology
) -> list[tuple[int, ...]]:
  """Returns the position of each device of the mesh on the torus.

  Devices without coordinates, such as CPUs, are placed in order.
  """
  places = np.ndindex(*topology.shape, topology.chip.devices)
  return [
    tuple(getattr(device, "coords", place))
    for device, place in zip(mesh.devices.flat, places, strict=False)
  ]
