"""Computes the FLOPs of a step, and the device memory that it needs.

If config.mesh is over the devices of this machine, the step is compiled, as the
run will do: XLA alone knows what it keeps. Otherwise the memory is estimated
(memory.py); `maskedlm plan` compiles for devices that are elsewhere.
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
  fixed = memory.bytes_per_device(state.fixed, mesh)  # A teacher's.
  params = memory.bytes_per_device(state.params, mesh) + fixed
  state_bytes = memory.bytes_per_device(state, mesh)
  figures = [
    {
      "first_step": phase.begin,
      **_figures(phase.config, task, mesh, params, state_bytes),
    }
    for phase, task in zip(phases, tasks, strict=True)
  ]
  return {
    "flops_per_step": figures[0]["flops_per_step"],
    "mesh": dict(mesh.shape),
    "devices": math.prod(mesh.shape.values()),
    "parameter_bytes_per_device": params,
    "optimizer_bytes_per_device": state_bytes - params,
    **{name: max(phase[name] for phase in figures) for name in _BYTES},
    "phases": figures,
  }


_BYTES = ("activation_bytes_per_device", "step_bytes_per_device")


def _figures(
  config: PretrainConfig,
  task: Task,
  mesh: memory.Sizes,
  params: int,
  state_bytes: int,
) -> dict[str, Any]:
  """Returns a step's figures, given the bytes of its parameters and state."""
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
    activations = memory.activation_bytes(config, rows, length, **machine)
    gradients = 2 if config.train.accumulate > 1 else 1
    measured = step_memory.StepMemory(
      state_bytes + gradients * params + activations, None
    )
  needed = measured.needed
  if needed is None:
    refusal = compiling.parse_out_of_memory(measured.refused)
    needed = refusal.needed if refusal else state_bytes
  return {
    "rows": config.data.batch_size,
    "length": length,
    "rows_per_device": rows,
    "flops_per_step": task.flops(0),
    "attention": memory.attention_of(config, length, **machine),
    "activation_bytes_per_device": needed - state_bytes,
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
    f"{sized(rest)} of activations and gradients (attention: "
    f"{phase['attention']})",
    f"memory: {needs}",
  ]
