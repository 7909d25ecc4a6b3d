"""Computes the FLOPs of a step, and the device memory that it needs.

If config.mesh is over the devices of this machine, the step is compiled, as the
run will do: XLA alone knows what it keeps. Otherwise the memory is estimated
(estimate.py); `maskedlm plan` compiles for devices that are elsewhere.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax

from maskedlm.core.counts import counted, sized
from maskedlm.core.task import Task
from maskedlm.modeling.attention import layer
from maskedlm.planning import compile as compiling
from maskedlm.planning import memory
from maskedlm.planning.estimate import estimate_pieces
from maskedlm.pretraining.config import PretrainConfig
from maskedlm.training import step_memory
from maskedlm.training.phases import Phase
from maskedlm.training.step import TrainState


def step_figures(
  phases: Sequence[Phase], tasks: Sequence[Task], state: TrainState
) -> dict[str, Any]:
  """Returns the figures of a step of each phase, given the shapes of its state.

  Raises:
    ConfigError: the batch does not fit the mesh.
  """
  mesh = memory.planned_mesh(phases[0].config.mesh)
  parameters, optimizer = memory.state_bytes(state, mesh)
  figures = [
    {
      "first_step": phase.begin,
      **_figures(phase.config, task, mesh, parameters, optimizer),
    }
    for phase, task in zip(phases, tasks, strict=True)
  ]
  return {
    "flops_per_step": figures[0]["flops_per_step"],
    "mesh": dict(mesh.shape),
    "devices": math.prod(mesh.shape.values()),
    "parameter_bytes_per_device": parameters,
    "optimizer_bytes_per_device": optimizer,
    **{name: max(phase[name] for phase in figures) for name in _BYTES},
    "phases": figures,
  }


_BYTES = ("activation_bytes_per_device", "step_bytes_per_device")


def _figures(
  config: PretrainConfig,
  task: Task,
  mesh: memory.Sizes,
  parameters: int,
  optimizer: int,
) -> dict[str, Any]:
  """Returns a step's figures, given the bytes of parameters and optimizer."""
  machine, length = layer.machine(), config.data.length
  parts = mesh.shape["data"] * mesh.shape["fsdp"] * config.train.accumulate
  rows = max(config.data.batch_size // parts, 1)
  compiled = math.prod(mesh.shape.values()) == jax.device_count()
  if compiled:
    step = compiling.step_of_task(config, task, jax.devices())
    with jax.set_mesh(step.mesh):
      measured = step_memory.measure_memory(
        step.program.step, step.program.state, step.batch
      )
  else:
    batch = memory.batch_bytes(task.batch_at("train", 0), mesh)
    held = (parameters, optimizer, batch)
    pieces = estimate_pieces(config, held, rows, **machine)
    measured = step_memory.StepMemory(pieces.peak, None)
  needed = measured.needed
  if needed is None:
    refusal = compiling.parse_out_of_memory(measured.refused)
    needed = refusal.needed if refusal else parameters + optimizer
  return {
    "rows": config.data.batch_size,
    "length": length,
    "rows_per_device": rows,
    "flops_per_step": task.flops(0),
    "attention": memory.attention_of(config, length, **machine),
    "activation_bytes_per_device": needed - parameters - optimizer,
    "step_bytes_per_device": needed,
    "device_bytes": measured.limit,
    "compiled": compiled,
    "fits": measured.fits,
  }


def format_step(
  config: PretrainConfig, figures, phase
) -> tuple[str, list[str]]:
  """Returns (title, lines) about a phase of the result of `step_figures`."""
  title = f"A step on {figures['devices']} device(s), mesh {figures['mesh']}"
  if len(figures["phases"]) > 1:
    title += f", from step {phase['first_step']:,} on"
  params = figures["parameter_bytes_per_device"]
  state = figures["optimizer_bytes_per_device"]
  rest = phase["activation_bytes_per_device"]
  total, limit = phase["step_bytes_per_device"], phase["device_bytes"]
  if not phase["compiled"]:
    needs = (
      f"about {sized(total)} a device, an estimate: `maskedlm plan` compiles "
      "for devices that are not here"
    )
  else:
    needs = f"{sized(total)} a device" + (
      f" of {sized(limit)}" if limit else ""
    )
    if not phase["fits"]:
      needs += f": it does not fit. {step_memory.less_memory(config)}"
  return title, [
    f"{counted(phase['rows'], 'row')} of {phase['length']} tokens, "
    f"{phase['rows_per_device']} of them on a device at a time",
    f"{phase['flops_per_step'] / 1e12:.3g} TFLOP (matmuls, forward and "
    "backward)",
    f"{sized(params)} of parameters, {sized(state)} of optimizer state, "
    f"{sized(rest)} of activations, gradients and batch (attention: "
    f"{phase['attention']})",
    f"memory: {needs}",
  ]
