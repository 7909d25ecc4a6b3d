"""Measures the device memory of a compiled step; refuses one that does not fit.

A run checks it before its first step, and `maskedlm inspect` shows it.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Batch, Task
from maskedlm.runtime import waiting
from maskedlm.training import sharding
from maskedlm.training.phases import Phase
from maskedlm.training.step import OverMesh, TrainState


class StepMemory(NamedTuple):
  """The memory that a step needs on a device, and the device's, in bytes."""

  needed: int | None  # None if the compiler refused it for a lack of memory.
  limit: int | None  # None if unknown.
  refused: str = ""  # The compiler's words.

  @property
  def fits(self) -> bool:
    """Whether the step fits, as far as is known."""
    if self.needed is None or self.limit is None:
      return not self.refused
    return self.needed <= self.limit


@waiting.explained("compiling the step")
def measure_memory(step: Any, state: TrainState, batch: Batch) -> StepMemory:
  """Compiles a jitted step for a batch's shapes, and returns its memory.

  It is what XLA allocates: the state, the batch, and the largest sum of
  activations, gradients and other temporaries at once. State and batch may be
  shapes and shardings.
  """
  devices = jax.local_devices()
  limit = (devices[0].memory_stats() or {}).get("bytes_limit")
  if devices[0].platform == "cpu":  # Devices share the machine's memory.
    pages = os.sysconf("SC_PHYS_PAGES")
    limit = pages * os.sysconf("SC_PAGE_SIZE") // len(devices)
  try:
    memory = step.lower(state, batch).compile().memory_analysis()
  except jax.errors.JaxRuntimeError as error:  # Raised by the TPU compiler.
    if "RESOURCE_EXHAUSTED" not in str(error):
      raise
    return StepMemory(None, limit, str(error).splitlines()[0])
  is_tpu = devices[0].platform == "tpu"
  return StepMemory(used_bytes(memory, is_tpu), None if is_tpu else limit)


def used_bytes(analysis: Any, is_tpu: bool) -> int:
  """Returns the most bytes in use at once, by XLA's memory_analysis()."""
  if is_tpu:
    # Not temp_size_in_bytes: on TPUs it exceeds what is in use at once, and
    # steps compile although it and the arguments exceed the chip's memory.
    return analysis.peak_memory_in_bytes
  # Others allocate all temporaries as one block.
  new = analysis.output_size_in_bytes - analysis.alias_size_in_bytes
  return analysis.argument_size_in_bytes + analysis.temp_size_in_bytes + new


def check_phases(
  phases: Sequence[Phase],
  tasks: Sequence[Task],
  programs: Sequence[OverMesh],
  state: TrainState,
  mesh: jax.sharding.Mesh,
  start: int,
) -> None:
  """Compiles the steps that are left of all phases, before the first call.

  `start` of them are done; each phase has its Task and its program.

  Raises:
    ConfigError: a step takes more memory than a device has.
  """
  for phase, task, program in zip(phases, tasks, programs, strict=True):
    if phase.end > start:
      for batch in shapes(task, max(phase.begin, start), phase.end):
        placed = sharding.place(batch, mesh)
        check_memory(phase.config, program.step, state, placed)
        if phase.config.train.watch_every:
          check_memory(phase.config, program.watch, state, placed)


def shapes(task: Task, start: int, end: int) -> Iterator[Batch]:
  """Yields a batch of the last step, and of the first if its shape differs."""
  last = task.batch_at("train", end - 1)
  yield last
  first = task.batch_at("train", start)
  if jax.tree.map(np.shape, first) != jax.tree.map(np.shape, last):
    yield first


def check_memory(
  config: Any, step: Callable, state: TrainState, batch: Batch
) -> None:
  """Compiles a jitted step for a batch's shapes, before its first call.

  Args:
    config: `data`, `train` and `model` are read, for the error message.
    step, state, batch: see measure_memory.

  Raises:
    ConfigError: the step takes more memory than a device has.
  """
  memory = measure_memory(step, state, batch)
  if memory.fits:
    return
  rows, *_, length = batch["segment_ids"].shape
  needed, limit = memory.needed or 0, memory.limit or 0
  usage = memory.refused or f"{needed / 1e9:.1f} GB of {limit / 1e9:.1f}"
  raise ConfigError(
    f"a step of {rows} rows of {length} tokens does not fit a device: {usage}. "
    f"{less_memory(config)}"
  )


def less_memory(config: Any) -> str:
  """Returns which options let a step take less memory."""
  ways = (
    f"Lower data.batch_size (now {config.data.batch_size}), or raise "
    f"train.accumulate (now {config.train.accumulate}), which computes the "
    "same batch in parts"
  )
  options = [] if config.model.remat == "full" else ["model.remat='full'"]
  if jax.device_count() > 1:
    options.append("mesh.fsdp")
  if config.train.watch_every:  # Its program needs more than a step.
    options.append("train.watch_every=0")
  return ways + (f"; or set {' or '.join(options)}." if options else ".")
