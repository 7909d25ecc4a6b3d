"""The training loop: `run(phases, tasks, ...)`, for any objective or task.

What happens in a step is in progress.py. The input of a step is a pure function
of its number, so a run that was killed continues from its newest checkpoint
exactly as if nothing had happened.
"""

import contextlib
import functools
import json
import pathlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import grain
import jax

from maskedlm.core import own_file
from maskedlm.core.task import Batch, Params, Task
from maskedlm.runtime import console, interrupts, multihost, output_files
from maskedlm.training import metrics, sharding, step_memory
from maskedlm.training import step as steps
from maskedlm.training.checkpoints import manager
from maskedlm.training.joined_tasks import join_tasks
from maskedlm.training.options import StepOptions
from maskedlm.training.phases import Phase, phase_index
from maskedlm.training.profiling import watch
from maskedlm.training.progress import RUN_AHEAD, Progress, heldout_results
from maskedlm.training.start import begin
from maskedlm.training.watching import observe

PREFETCH = 4  # Batches that threads make ahead, so that no step waits for one.


class Result(NamedTuple):
  """The outcome of a run."""

  params: Params
  step: int
  heldout: Mapping[str, float]  # Empty if the run was interrupted.
  tokens_per_second: float | None  # None if no step was run.
  interrupted: bool
  # Parameters, as numpy arrays -> Task.outputs of each held-out batch.
  heldout_outputs: Callable[[Params], list]


def run(
  phases: Sequence[Phase],
  tasks: Sequence[Task],
  workdir: pathlib.Path,
  *,
  mesh: jax.sharding.Mesh,
  identity: Mapping[str, Any],
  frozen: Collection[str],
  start_from: Callable[[Params], Params] = lambda params: params,
  continue_from: str = "",
) -> Result:
  """Trains to the end of the last phase, from the newest checkpoint if any.

  Args:
    phases: the parts of the run (phases.py); the corpus and the objective are
      not read.
    tasks, mesh: the Task of each phase; the device mesh.
    workdir: receives the config, the parameters' shapes, checkpoints and logs.
    identity: config, corpus and tokenizer, stored in each checkpoint and
      compared on resume (checkpoints/resume.py).
    frozen: options that a resumed run must keep.
    start_from: fresh parameters -> those that a new run starts from, some of
      which may be numpy arrays.
    continue_from: a run, or one of its checkpoints, that a new run continues.

  Raises:
    NonFiniteError, SpikeError: see nonfinite_rows.check.
    ConfigError: the config changed in a way that would corrupt the run.
    CheckpointError: no checkpoint can be read.
    StorageError: a checkpoint can't be written.
  """
  tasks = join_tasks(phases, tasks)
  programs = _programs(phases, tasks, mesh)
  options, num_steps = phases[0].config.train, phases[-1].end
  checkpoints = _open_checkpoints(workdir, options)
  with (
    interrupts.stop_signals() as signalled,  # Until the last save.
    jax.set_mesh(mesh),  # Kernels look it up to split their work.
    contextlib.closing(checkpoints),
  ):
    state, start, restored = begin(
      programs[0],
      checkpoints,
      identity=identity,
      frozen=frozen,
      start_from=start_from,
      num_steps=num_steps,
      unverified=options.resume_unverified,
      continue_from=continue_from,
    )
    state = _with_fixed(state, tasks[0], programs[0])
    _describe(workdir, identity, tasks[0], state.params, mesh)
    updates, batches = _wrap_steps(phases, programs, tasks, workdir, start)
    if start < num_steps:  # Fail now, not later.
      checkpoints.check_room(state)
      step_memory.check_phases(phases, tasks, programs, state, mesh, start)
    logged = start if restored else 0  # The rest is in continue_from's log.
    logbook = metrics.open_logbook(
      workdir, start, identity["config"], tasks[0].flops, logged=logged
    )
    stopped = multihost.any_host(signalled.is_set, delay=RUN_AHEAD)
    progress = Progress(
      phases,
      tasks,
      programs,
      updates,
      workdir,
      mesh,
      identity,
      checkpoints,
      logbook,
      stopped,
      state,
      start,
    )
    heldout = progress.run(batches, restored)
    logbook.close()
  speed, params = logbook.tokens_per_second(), progress.state.params
  outputs = functools.partial(_heldout_outputs, tasks[-1], programs[-1], mesh)
  return Result(params, progress.step, heldout, speed, stopped(), outputs)


def _heldout_outputs(task: Task, program, mesh, params: Params) -> list:
  with jax.set_mesh(mesh):
    params = sharding.put_on_devices(params, program.state.params)
    results = heldout_results(
      task, program.heldout_step, params, mesh, stopped=lambda: False
    )
  return [outputs for *_, outputs in results]


def _programs(phases, tasks, mesh) -> list[steps.OverMesh]:
  return [
    steps.over_mesh(phase.config, task, mesh, rates=phase.rates)
    for phase, task in zip(phases, tasks, strict=True)
  ]


def _open_checkpoints(
  workdir: pathlib.Path, options: StepOptions
) -> manager.Checkpoints:
  return manager.open_checkpoints(
    workdir,
    keep_last=options.keep_last,
    keep_best=options.keep_best,
    keep_every=options.keep_every,
    log=console.log,
  )


def _describe(
  workdir: pathlib.Path, identity, task: Task, params: Params, mesh
) -> None:
  """Writes config.json, parameters.txt and code/."""
  config = json.dumps(identity["config"], indent=2) + "\n"
  multihost.write_text(workdir / "config.json", config)
  described = sharding.describe_parameters(params, mesh)
  multihost.write_text(workdir / "parameters.txt", described)
  copies = own_file.copies(identity["config"], task.describe.get("encoder", {}))
  for name, code in copies.items():
    if multihost.is_primary():
      output_files.write_bytes(workdir / name, code)


def _with_fixed(state, task: Task, program: steps.OverMesh):
  """Returns the state with the arrays of Task.fixed."""
  fixed = sharding.put_on_devices(task.fixed.load(), program.state.fixed)
  return state._replace(fixed=fixed)


def _wrap_steps(phases, programs, tasks, workdir: pathlib.Path, start: int):
  """Returns (updates, batches), which trace or measure the steps if asked."""
  batches = prefetch(tasks[0], start, phases[-1].end)
  config, now = phases[0].config, phase_index(phases, start)
  updates = [program.step for program in programs]
  # Before compiling: it changes which names the compiled step records.
  updates[now], batches = watch(
    updates[now],
    batches,
    config.profile,
    workdir,
    num_steps=max(phases[now].end - start, 0),
  )
  return observe(updates, programs, config.train.watch_every, start), batches


def prefetch(task: Task, start: int, num_steps: int) -> Iterator[Batch]:
  """Returns an iterator over the batches of steps, prefetched by threads."""
  return iter(
    grain.MapDataset.range(start, max(start, num_steps))
    .map(lambda step: task.batch_at("train", int(step)))
    .to_iter_dataset(
      grain.ReadOptions(num_threads=2, prefetch_buffer_size=PREFETCH)
    )
  )
