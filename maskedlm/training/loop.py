"""The training loop: `run(phases, tasks, ...)`, for any objective or task.

Order of a step: batch -> update -> (log) -> (evaluate) -> (checkpoint). The
input of a step is a pure function of its number, so a run that was killed
continues from its newest checkpoint exactly as if nothing had happened.

The host runs at most RUN_AHEAD steps ahead of the device. It reads the results
of a step (whether it was finite, the metrics) only when that step has ended, so
logging never stalls the device, and signals are handled quickly.
"""

import collections
import contextlib
import json
import pathlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import grain
import jax
from ml_collections import ConfigDict

from maskedlm.core.task import Params, Task
from maskedlm.runtime import console, interrupts, multihost, waiting
from maskedlm.training import metrics, nonfinite_rows, sharding, step_memory
from maskedlm.training import step as steps
from maskedlm.training.checkpoints import manager
from maskedlm.training.phases import (
  Phase,
  describe_phase,
  join_tasks,
  phase_index,
)
from maskedlm.training.profiling import watch
from maskedlm.training.spikes import forget
from maskedlm.training.start import begin
from maskedlm.training.watching import observe

RUN_AHEAD = 2  # Enough to hide the host's work; more would delay a stop.


class Result(NamedTuple):
  """The outcome of a run."""

  params: Params
  step: int
  heldout: Mapping[str, float]  # Empty if the run was interrupted.
  tokens_per_second: float | None  # None if no step was run.
  interrupted: bool


def run(
  phases: Sequence[Phase],
  tasks: Sequence[Task],
  workdir: pathlib.Path,
  *,
  mesh: jax.sharding.Mesh,
  identity: Mapping[str, Any],
  frozen: Collection[str],
  start_from: Callable[[Params], Params] = lambda params: params,
) -> Result:
  """Trains to the end of the last phase, from the newest checkpoint if any.

  Args:
    phases: the parts of the run, phases.split of the effective config; the
      corpus and the objective are not read.
    tasks: the Task of each phase.
    workdir: receives the config, the parameters' shapes, checkpoints and logs.
    mesh: the device mesh.
    identity: config, corpus and tokenizer, stored in each checkpoint and
      compared on resume (checkpoints/resume.py).
    frozen: options that a resumed run must keep.
    start_from: fresh parameters -> those that a new run starts from, some of
      which may be numpy arrays.

  Raises:
    NonFiniteError, SpikeError: see nonfinite_rows.check.
    ConfigError: the config changed in a way that would corrupt the run.
    CheckpointError: no checkpoint can be read.
    StorageError: a checkpoint can't be written.
  """
  tasks = join_tasks(phases, tasks)
  programs = [
    steps.over_mesh(phase.config, task, mesh, rates=phase.rates)
    for phase, task in zip(phases, tasks, strict=True)
  ]
  task, config, num_steps = tasks[0], phases[0].config, phases[-1].end
  options, add = config.train, jax.jit(metrics.add)
  checkpoints = manager.open_checkpoints(
    workdir,
    keep_last=options.keep_last,
    keep_best=options.keep_best,
    keep_every=options.keep_every,
    log=console.log,
  )
  with (
    interrupts.stop_signals() as signalled,  # Until the last save.
    jax.set_mesh(mesh),  # Kernels look it up to split their work.
    contextlib.closing(checkpoints),
  ):
    stopped = multihost.any_host(signalled.is_set, delay=RUN_AHEAD)
    state, start, restored = begin(
      config,
      programs[0],
      checkpoints,
      identity=identity,
      frozen=frozen,
      start_from=start_from,
      num_steps=num_steps,
    )
    written = json.dumps(identity["config"], indent=2) + "\n"
    multihost.write_text(workdir / "config.json", written)
    described = sharding.describe_parameters(state.params, mesh)
    multihost.write_text(workdir / "parameters.txt", described)
    batches = _prefetch(task, start, num_steps, options.prefetch)
    now = phase_index(phases, start)
    updates = [program.step for program in programs]
    # Before compiling: it changes which names the compiled step records.
    updates[now], batches = watch(
      updates[now],
      batches,
      config.profile,
      workdir,
      num_steps=max(phases[now].end - start, 0),
    )
    updates = observe(updates, programs, options.watch_every, start)
    if start < num_steps:  # Fail now, not later.
      checkpoints.check_room(state)
      step_memory.check_phases(phases, tasks, programs, state, mesh, start)
    logged = start if restored else 0  # The rest is in continue_from's log.
    logbook = metrics.open_logbook(
      workdir, start, identity["config"], task.flops, logged=logged
    )
    announce = waiting.announce_lines(options.log_every)

    def record_step(step, failed, totals, count) -> None:
      """Logs totals of the last `count` steps; raises if too many failed."""
      nonfinite_rows.check(task, workdir, step, failed, options)
      announce()
      if count:
        logbook.train(step, jax.device_get(totals), count)

    def measure(step) -> dict[str, float]:
      """Evaluates the weights, and their moving average if there is one."""
      run_step = programs[phase_index(phases, step - 1)].heldout_step
      values = evaluate(task, run_step, state.params, mesh, stopped)
      if not values or not state.ema:
        return values
      averaged = evaluate(task, run_step, state.ema, mesh, stopped)
      ema = {f"ema_{k}": v for k, v in averaged.items() if "/" not in k}
      return {**values, **ema} if ema else {}

    def evaluate_heldout(step) -> dict[str, float]:
      values = measure(step)
      logbook.heldout(step, values)
      return values

    def meta(step, heldout) -> dict[str, Any]:
      described = dict(tasks[phase_index(phases, step - 1)].describe)
      return {"identity": dict(identity), "task": described, "heldout": heldout}

    step, heldout, totals, count, stopping = start, {}, None, 0, False
    inflight = collections.deque()
    if not restored and (start or options.keep_every):
      checkpoints.save(start, state, meta(start, {}), metric=None)
    last = phases[phase_index(phases, start - 1)].config.train
    is_due = start > 0 and _evaluates(last, start)
    if restored and is_due and not restored["heldout"]:
      heldout = evaluate_heldout(start)  # The interrupted run did not.
      checkpoints.update_metadata(
        start, meta(start, heldout), metric=metrics.rank(heldout, task.best)
      )
      stopping = stopped()
    while step < num_steps and not stopping:
      now = phase_index(phases, step)
      if step == phases[now].begin and now:
        console.log(describe_phase(phases, now))
        state = state._replace(losses=forget(state.losses))
      options = phases[now].config.train
      batch = sharding.place(next(batches), mesh)
      state, stats = updates[now](state, batch)
      step += 1
      totals = stats if totals is None else add(totals, stats)
      count += 1
      stopping = stopped()
      evaluates = _evaluates(options, step)
      saves = step == num_steps or step % options.checkpoint_every == 0
      saves |= evaluates and options.keep_best > 0  # It may be the best.
      saves |= options.keep_every > 0 and step % options.keep_every == 0
      waits = stopping or evaluates or saves
      logs = waits or step == phases[now].end or step % options.log_every == 0
      # A copy: the state itself is donated to the next step.
      failed = state.nonfinite + 0, state.losses.spiked + 0
      inflight.append((step, failed, totals, logs and count))
      if logs:
        jax.tree.map(lambda x: x.copy_to_host_async(), totals)
        totals, count = None, 0
      while len(inflight) > (0 if waits else RUN_AHEAD):
        record_step(*inflight.popleft())
      heldout, began = {}, time.perf_counter()
      if evaluates and (task.best or not stopping):
        heldout = evaluate_heldout(step)
        stopping = stopped()  # If it was cut short, save here.
      if stopping or saves:
        metric = metrics.rank(heldout, task.best)
        checkpoints.save(step, state, meta(step, heldout), metric=metric)
      logbook.exclude(time.perf_counter() - began)
    if not heldout and not stopping:
      heldout = measure(step)
    logbook.close()
  speed = logbook.tokens_per_second()
  return Result(state.params, step, heldout, speed, interrupted=stopped())


def evaluate(
  task: Task, heldout_step: Callable, params: Params, mesh, stopped
) -> dict[str, float]:
  """Returns {metric: value} on the held-out set; {} if stopped or no set."""
  results = []
  for i in range(task.num_heldout_batches):
    batch = sharding.place(task.batch_at("heldout", i), mesh)
    results.append(heldout_step(params, batch, i))
    if i >= RUN_AHEAD:  # Outputs must not accumulate on the device.
      results[i - RUN_AHEAD] = jax.device_get(results[i - RUN_AHEAD])
    if stopped() and not task.best:
      return {}  # An evaluation that selects the best is short: finish it.
  if not results:
    return {}
  *pairs, outputs = zip(*jax.device_get(results), strict=True)
  terms, stats = (metrics.means(metrics.sums(each)) for each in pairs)
  loss = {"loss": sum(terms.values())} if terms else {}
  values = {**loss, **stats}
  return values | dict(task.score(outputs) if task.score else {})


def _evaluates(options: ConfigDict, step: int) -> bool:
  """Returns whether to evaluate after `step` steps."""
  return step == options.num_steps or step % options.eval_every == 0


def _prefetch(task: Task, start: int, num_steps: int, count: int):
  """Returns an iterator over the batches of steps, prefetched by threads."""
  return iter(
    grain.MapDataset.range(start, max(start, num_steps))
    .map(lambda step: task.batch_at("train", int(step)))
    .to_iter_dataset(
      grain.ReadOptions(num_threads=2, prefetch_buffer_size=count)
    )
  )
