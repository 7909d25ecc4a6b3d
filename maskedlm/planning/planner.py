"""Plans a config's step on a topology: memory, time and cost."""

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
from ml_collections import ConfigDict

from maskedlm.data.batches import placeholder_corpus
from maskedlm.modeling import architecture
from maskedlm.modeling.attention import blockwise
from maskedlm.planning import (
  collectives,
  compile,
  executed_flops,
  hlo,
  memory_traffic,
  roofline,
)
from maskedlm.planning import estimate as estimates
from maskedlm.planning.attention import attention_of
from maskedlm.planning.collectives import Collective
from maskedlm.planning.compile import Compiled, Pieces, Step, TooLarge
from maskedlm.planning.memory import Sizes
from maskedlm.planning.roofline import Estimate
from maskedlm.planning.topologies import Topology
from maskedlm.pretraining import objectives
from maskedlm.training import sharding
from maskedlm.training.phases import Phase

LABEL = "model, not measured"
TRIES = 4  # Maximum number of compilations in search of the largest batch.
Log = Callable[[str], None]


class Plan(NamedTuple):
  """A step on a topology; if it is too large, unknown fields keep defaults."""

  topology: Topology
  mesh: dict[str, int]
  rows: int  # Rows on a chip at a time.
  length: int
  num_layers: int
  compiled: bool  # False = estimated without compiling.
  available: int  # Bytes of a chip that a run can use.
  model_flops: float  # FLOPs of a step on all chips, without recomputation.
  fits: bool
  bytes_per_chip: int  # Maximum in use at once; if it doesn't fit, needed.
  remedies: dict[str, Any]  # {} if it fits.
  pieces: Pieces | None = None
  recomputed: float | None = None  # Share of the executed FLOPs.
  sent: Sequence[Collective] = ()
  estimate: Estimate | None = None
  run: Mapping[str, float] = {}  # Tokens/s, hours, chip-hours, cost.


def make_plan(
  phases: Sequence[Phase],
  phase: int,
  topology: Topology,
  *,
  rows: int | None = None,
  price: float | None,
  search: bool,
  log: Log,
) -> Plan:
  """Compiles the step of a phase, or estimates it (GPUs without the plugin).

  Args:
    phases: those of the run.
    phase: index of the phase.
    topology: the chips.
    rows: rows on a chip at a time, instead of the config's; hours and cost are
      still those of the config's rows.
    price: price of a chip-hour; None = no cost.
    search: if the step doesn't fit, search for the largest batch that does.
    log: prints a line of progress.

  Raises:
    ConfigError: the run itself would refuse the config, or the compiler is
      missing or fails.
  """
  config = phases[phase].config
  sizes = sharding.mesh_sizes(config.mesh, topology.num_chips)
  if rows:
    config = with_rows(config, rows * _parts(config, sizes))
  step = _step(config, topology, sizes)
  rounds = _rounds(step, topology)
  model_flops = step.task.flops(0)
  rows = _rows_per_chip(config, sizes)
  compiled = compile.can_compile(topology)
  plan = functools.partial(
    Plan,
    topology=topology,
    mesh=sizes,
    rows=rows,
    length=config.data.length,
    num_layers=config.model.num_layers,
    compiled=compiled,
    available=compile.available_bytes(topology),
    model_flops=model_flops,
  )
  if compiled:
    found = _compile(step, topology, log)
    if isinstance(found, TooLarge):
      remedies = find_remedies(config, topology, found, search=search, log=log)
      return plan(fits=False, bytes_per_chip=found.needed, remedies=remedies)
    program = hlo.parse_program(found.text, rounds)
    pieces, fits = found.pieces, True
    moved = memory_traffic.measure_traffic(program)
    sent = collectives.find_collectives(program, dict(step.mesh.shape))
  else:
    pieces = estimates.estimate_pieces(
      step, Sizes(sizes), rows, topology.platform
    )
    fits = pieces.peak <= compile.available_bytes(topology)
    moved = estimates.estimate_traffic(pieces, config.train.accumulate)
    sent = estimates.estimate_collectives(step, sizes)
  executed = _executed(step, rounds)
  chips = topology.num_chips
  estimate = roofline.estimate_step(
    topology,
    flops=max(executed, model_flops) / chips,  # Kernels may hide some.
    traffic=moved,
    collectives=sent,
    coords=compile.coordinates(step.mesh, topology),
  )
  if compiled and not topology.is_tpu:
    waited = roofline.exposed(program, topology, sent)
    estimate = estimate._replace(exposed=waited)
  changed = {} if fits else {"changes": memory_savings(config, topology)}
  return plan(
    fits=fits,
    bytes_per_chip=pieces.peak,
    remedies=changed,
    pieces=pieces,
    recomputed=recomputed(step, executed, rounds),
    sent=sent,
    estimate=estimate,
    run=run_cost(phases, step, estimate, topology, price),
  )


def _step(config, topology: Topology, sizes) -> Step:
  """Returns the step on the topology's devices, or a local one to estimate."""
  config = config.copy_and_resolve_references()
  if compile.can_compile(topology):
    config.mesh.update(sizes)
    return compile.make_step(config, compile.devices(topology))
  data = config.data
  sharding.check_batch(data.batch_size, config.train.accumulate, Sizes(sizes))
  config.mesh.update(data=1, fsdp=1, tensor=1)
  config.model.update(_traceable(config, data.length, topology))
  return compile.make_step(config, jax.devices()[:1])


def _traceable(
  config: ConfigDict, length: int, topology: Topology
) -> dict[str, Any]:
  """Returns options of config.model with which a CPU traces the same matmuls.

  Kernels have the matmuls of blockwise attention, and dropout has none.

  Raises:
    ConfigError: model.attention doesn't run on the chip.
  """
  cfg = architecture.encoder_config(
    config.model, config.tokenizer.vocab_size, length
  )
  architecture.check_attention(cfg, platform=topology.platform)
  found = attention_of(config, length, platform=topology.platform)
  if found == "xla":
    return {"attention": "xla"}
  return {"attention": "blockwise", "attention_dropout": 0.0}


def _rounds(step: Step, topology: Topology) -> int:
  """Returns the iterations of blockwise attention's loop, one per block."""
  L = step.config.data.length
  found = attention_of(step.config, L, platform=topology.platform)
  return -(-L // blockwise.BLOCK) if found == "blockwise" else 1


def _compile(step: Step, topology: Topology, log: Log) -> Compiled | TooLarge:
  mesh = ", ".join(f"{a}={n}" for a, n in step.mesh.shape.items() if n > 1)
  log(
    f"compiling for {topology.name} ({mesh or '1 chip'}), "
    f"{step.config.data.batch_size:,} rows of {step.config.data.length}: "
    "minutes"
  )
  start = time.perf_counter()
  found = compile.compile_step(step, topology)
  how = "too large" if isinstance(found, TooLarge) else "fits"
  log(f"  {time.perf_counter() - start:.0f} s: {how}")
  return found


def _rows_per_chip(config, sizes) -> int:
  return config.data.batch_size // _parts(config, sizes)


def _parts(config, sizes) -> int:
  """Returns the number of parts of a batch, over chips and microbatches."""
  return sizes["data"] * sizes["fsdp"] * config.train.accumulate


def recomputed(step: Step, executed: float, rounds: int) -> float:
  """Returns the share of the executed FLOPs that are recomputed (remat)."""
  config = step.config.copy_and_resolve_references()
  if config.model.remat == "none":
    return 0.0
  config.model.remat = "none"
  device = step.mesh.devices.flat[0]
  config.mesh.update(data=1, fsdp=1, tensor=1)
  plain = compile.make_step(config, [device])
  return 1 - _executed(plain, rounds) / executed


def _executed(step: Step, rounds: int) -> float:
  state = step.program.state
  # Unwrapped, as a traced function may not have compiler options.
  update = step.program.step.__wrapped__
  return executed_flops.count_executed(
    update, step.mesh, state, step.batch, rounds=rounds
  )


def run_cost(
  phases: Sequence[Phase],
  step: Step,
  estimate: Estimate,
  topology: Topology,
  price: float | None,
) -> dict[str, float]:
  """Returns tokens/s of this phase, and hours and cost of the whole run.

  The run's other phases are assumed to reach the same FLOP/s.

  Args:
    phases: those of the run; hours and cost are those of their rows, even if a
      step with other rows was planned.
    step: the planned step.
    estimate: the step's time.
    topology: the chips.
    price: price of a chip-hour; None = no cost.
  """
  chips, data = topology.num_chips, step.config.data
  flops_per_second = step.task.flops(0) / estimate.step
  total, rows = 0.0, 0
  for phase in phases:
    config, count = phase.config, phase.end - phase.begin
    corpus = placeholder_corpus.make_corpus(config.tokenizer)
    total += count * objectives.make_task(config, corpus).flops(0)
    rows += count * config.data.batch_size
  hours = total / flops_per_second / 3600
  found = {
    "tokens_per_second": data.batch_size * data.length / estimate.step,
    "rows": rows,
    "hours": hours,
    "chip_hours": hours * chips,
  }
  if price is not None:
    found["cost"] = hours * chips * price
  return found


# Remedies for a step that doesn't fit


def find_remedies(
  config, topology: Topology, found: TooLarge, *, search, log: Log
) -> dict[str, Any]:
  """Returns options that save memory and, if `search`, the largest batch.

  Raises:
    ConfigError: as for make_plan.
  """
  sizes = sharding.mesh_sizes(config.mesh, topology.num_chips)
  parts = _parts(config, sizes)
  rows = _rows_per_chip(config, sizes)
  result: dict[str, Any] = {"changes": memory_savings(config, topology)}
  if not search:
    return result

  def needs(count: int) -> tuple[bool, int]:
    smaller = with_rows(config, count * parts)
    tried = _compile(_step(smaller, topology, sizes), topology, log)
    if isinstance(tried, TooLarge):
      return False, tried.needed
    return True, tried.pieces.peak

  log(f"{rows} rows a chip don't fit; looking for the most that do")
  result["largest_rows_per_chip"] = largest_batch(
    needs, rows, found.needed, found.limit
  )
  return result


def with_rows(config: ConfigDict, num_rows: int) -> ConfigDict:
  """Returns the config with a global batch of num_rows."""
  config = config.copy_and_resolve_references()
  config.data.batch_size = num_rows
  return config


def largest_batch(
  needs: Callable[[int], tuple[bool, int]], rows: int, needed: int, limit: int
) -> int:
  """Returns the largest number of rows found to fit; 0 if no try fits.

  Makes at most TRIES tries, each guessed by a straight line through the memory
  of earlier ones, as memory grows with the rows. The result fits; a few more
  rows might fit, too.

  Args:
    needs: rows -> (whether they fit, bytes needed).
    rows: a number of rows that doesn't fit.
    needed: bytes that these rows need.
    limit: bytes that are available.
  """
  best, least = 0, rows  # best fits, least doesn't.
  points = {rows: needed}
  for _ in range(TRIES):
    if least - best <= 1:
      break
    if len(points) > 1:
      (a, x), (b, y) = sorted(points.items())[:2]
      slope = max((y - x) / (b - a), 1.0)
      guess = a + (limit - x) / slope
    else:
      guess = rows * limit / needed
    guess = min(max(math.floor(guess), best + 1), least - 1)
    fits, size = needs(guess)
    points[guess] = size
    best, least = (guess, least) if fits else (best, guess)
  return best


def memory_savings(
  config: ConfigDict, topology: Topology
) -> list[dict[str, Any]]:
  """Estimates what other options save: [{option, bytes}], largest first.

  Raises:
    ConfigError: as for make_plan.
  """
  sizes = sharding.mesh_sizes(config.mesh, topology.num_chips)
  rows = _rows_per_chip(config, sizes)
  paper = config.copy_and_resolve_references()
  paper.mesh.update(data=1, fsdp=1, tensor=1)
  step = compile.make_step(paper, jax.devices()[:1])

  def total(changed: ConfigDict, sizes) -> int:
    return estimates.estimate_pieces(
      step._replace(config=changed), Sizes(sizes), rows, topology.platform
    ).peak

  now = total(config, sizes)
  found = []
  for name, options in (
    ("model.dtype=bfloat16", {"dtype": "bfloat16"}),
    ("model.remat=dots", {"remat": "dots"}),
    ("model.remat=full", {"remat": "full"}),
  ):
    changed = config.copy_and_resolve_references()
    changed.model.update(options)
    found.append((name, now - total(changed, sizes)))
  for fsdp in sorted({8, topology.num_chips}):
    if sizes["data"] * sizes["fsdp"] % fsdp == 0 and fsdp > sizes["fsdp"]:
      data = sizes["data"] * sizes["fsdp"] // fsdp
      sharded = {**sizes, "data": data, "fsdp": fsdp}
      found.append((f"mesh.fsdp={fsdp}", now - total(config, sharded)))
  return [
    {"option": name, "bytes": saved}
    for name, saved in sorted(found, key=lambda x: -x[1])
    if saved > 0
  ]
