"""Takes the steps of a run, with what is due after each.

Order of a step: batch -> update -> (log) -> (evaluate) -> (checkpoint). The
host runs at most RUN_AHEAD steps ahead of the device. It reads the results of a
step (whether it was finite, the metrics) only when that step has ended, so
logging never stalls the device, and signals are handled quickly.
"""

import collections
import dataclasses
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Batch, Params, Task
from maskedlm.runtime import console, waiting
from maskedlm.training import metrics, nonfinite_rows, sharding
from maskedlm.training import step as steps
from maskedlm.training.checkpoints import manager
from maskedlm.training.options import StepOptions
from maskedlm.training.phases import Phase, describe_phase, phase_index
from maskedlm.training.spikes import forget

RUN_AHEAD = 2  # Enough to hide the host's work; more would delay a stop.
_add = jax.jit(metrics.add)


@dataclasses.dataclass
class Progress:
  """A run between two steps."""

  phases: Sequence[Phase]
  tasks: Sequence[Task]  # The result of join_tasks.
  programs: Sequence[steps.OverMesh]
  updates: Sequence[Callable]  # (state, batch) -> (state, metrics), by phase.
  workdir: pathlib.Path
  mesh: jax.sharding.Mesh
  identity: Mapping[str, Any]
  checkpoints: manager.Checkpoints
  logbook: metrics.Logbook
  stopped: Callable[[], bool]
  state: steps.TrainState
  step: int  # Steps done.
  totals: Any = None  # Metrics of the last `count` steps, not logged yet.
  count: int = 0
  # Steps whose results were not read yet: (step, what failed, totals, count).
  inflight: collections.deque = dataclasses.field(
    default_factory=collections.deque
  )

  @property
  def last(self) -> int:
    """The index of the phase of the last step."""
    return phase_index(self.phases, self.step - 1)

  def __post_init__(self):
    options = self.phases[0].config.train
    self.announce = waiting.announce_lines(options.log_every)

  def run(
    self, batches: Iterator[Batch], restored: Mapping[str, Any] | None
  ) -> Mapping[str, float]:
    """Takes all steps; returns the last held-out metrics, {} if stopped.

    Args:
      batches: this host's rows of each step.
      restored: the meta of the run's own checkpoint, if there is one.
    """
    heldout, stopping = self.resume(restored)
    while self.step < self.phases[-1].end and not stopping:
      heldout, stopping = self.advance(next(batches))
    return heldout if heldout or stopping else self.measure()

  def resume(self, restored: Mapping[str, Any] | None) -> tuple[dict, bool]:
    """Does what a killed run did not; returns (held-out metrics, stopping)."""
    options = self.phases[0].config.train
    if not restored and (self.step or options.keep_every):
      self.save({}, ranked=False)
    is_due = self.step > 0 and _evaluates(
      self.phases[self.last].config.train, self.step
    )
    if not restored or not is_due or restored["heldout"]:
      return {}, False
    heldout = self.evaluate()
    self.checkpoints.update_metadata(
      self.step, self.meta(heldout), metric=self.rank(heldout)
    )
    return heldout, self.stopped()

  def advance(self, rows: Batch) -> tuple[dict, bool]:
    """Does a step, and what is due; returns (held-out metrics, stopping)."""
    now = phase_index(self.phases, self.step)
    options, end = self.phases[now].config.train, self.phases[-1].end
    if self.step == self.phases[now].begin and now:
      console.log(describe_phase(self.phases, now))
      self.state = self.state._replace(losses=forget(self.state.losses))
    batch = sharding.place(rows, self.mesh)
    self.state, stats = self.updates[now](self.state, batch)
    self.step += 1
    self.totals = stats if self.totals is None else _add(self.totals, stats)
    self.count += 1
    step, stopping = self.step, self.stopped()
    evaluates = _evaluates(options, step)
    saves = step == end or step % options.checkpoint_every == 0
    saves |= evaluates and options.keep_best > 0  # It may be the best.
    saves |= options.keep_every > 0 and step % options.keep_every == 0
    waits = stopping or evaluates or saves
    logs = waits or step == self.phases[now].end
    self.finish_steps(options, waits, logs or step % options.log_every == 0)
    heldout, began = {}, time.perf_counter()
    if evaluates and (self.tasks[0].best or not stopping):
      heldout = self.evaluate()
      stopping = self.stopped()  # If it was cut short, save here.
    if stopping or saves:
      self.save(heldout)
    self.logbook.exclude(time.perf_counter() - began)
    return heldout, stopping

  def finish_steps(self, options: StepOptions, waits: bool, logs: bool):
    """Reads the results of steps that have ended, or of all if it waits."""
    # A copy: the state itself is donated to the next step.
    counts = self.state.nonfinite, self.state.losses.spiked
    shards = [x.addressable_data(0) for x in counts]
    failed = jax.device_put(shards, may_alias=False)
    self.inflight.append((self.step, failed, self.totals, logs and self.count))
    if logs:
      jax.tree.map(lambda x: x.copy_to_host_async(), self.totals)
      self.totals, self.count = None, 0
    while len(self.inflight) > (0 if waits else RUN_AHEAD):
      step, failed, totals, count = self.inflight.popleft()
      nonfinite_rows.check(self.tasks[0], self.workdir, step, failed, options)
      self.announce()
      if count:
        self.logbook.train(step, jax.device_get(totals), count)

  def measure(self) -> dict[str, float]:
    """Evaluates the weights, and their moving average if there is one."""
    task, program = self.tasks[0], self.programs[self.last].heldout_step
    rest = self.mesh, self.stopped
    values = evaluate(task, program, self.state.params, *rest)
    if not values or not self.state.ema:
      return values
    averaged = evaluate(task, program, self.state.ema, *rest)
    ema = {f"ema_{k}": v for k, v in averaged.items() if "/" not in k}
    return {**values, **ema} if ema else {}

  def evaluate(self) -> dict[str, float]:
    """Measures the weights, and logs the metrics."""
    values = self.measure()
    self.logbook.heldout(self.step, values)
    return values

  def meta(self, heldout: Mapping[str, float]) -> dict[str, Any]:
    """Returns the meta of the checkpoint of this step."""
    described = dict(self.tasks[self.last].describe)
    identity = dict(self.identity)
    return {"identity": identity, "task": described, "heldout": heldout}

  def rank(self, heldout: Mapping[str, float]) -> float | None:
    """Returns the metric that ranks checkpoints, lower is better."""
    return metrics.rank(heldout, self.tasks[0].best)

  def save(self, heldout: Mapping[str, float], *, ranked: bool = True) -> None:
    """Starts to save this step."""
    metric = self.rank(heldout) if ranked else None
    state = self.state._replace(fixed=())
    self.checkpoints.save(self.step, state, self.meta(heldout), metric=metric)


def _evaluates(options: StepOptions, step: int) -> bool:
  """Returns whether to evaluate after `step` steps."""
  return step == options.num_steps or step % options.eval_every == 0


def heldout_results(
  task: Task, heldout_step: Callable, params: Params, mesh, stopped
) -> list[tuple]:
  """Returns the results of heldout_step by batch; [] if it was stopped."""
  results = []
  for i in range(task.num_heldout_batches):
    batch = sharding.place(task.batch_at("heldout", i), mesh)
    results.append(heldout_step(params, batch, i))
    if i >= RUN_AHEAD:  # Outputs must not accumulate on the device.
      results[i - RUN_AHEAD] = jax.device_get(results[i - RUN_AHEAD])
    if stopped() and not task.best:
      return []  # An evaluation that selects the best is short: finish it.
  return jax.device_get(results)


def evaluate(
  task: Task, heldout_step: Callable, params: Params, mesh, stopped
) -> dict[str, float]:
  """Returns {metric: value} on the held-out set; {} if stopped or no set."""
  results = heldout_results(task, heldout_step, params, mesh, stopped)
  if not results:
    return {}
  *pairs, outputs = zip(*results, strict=True)
  terms, stats = (metrics.means(metrics.sums(parts)) for parts in pairs)
  loss = {"loss": sum(terms.values())} if terms else {}
  values = {**loss, **stats}
  values |= dict(task.score(list(outputs)) if task.score else {})
  extra = task.evaluate(params) if task.evaluate else {}
  if twice := values.keys() & extra.keys():
    raise ConfigError(
      f"Task.evaluate returns {', '.join(sorted(twice))}, which the held-out "
      "rows have measured: choose another name."
    )
  return values | {name: float(value) for name, value in extra.items()}
