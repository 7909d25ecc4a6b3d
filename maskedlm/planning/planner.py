"""Plans a config's step on a topology: memory, time and cost."""

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax

from maskedlm.core.options import changed
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
from maskedlm.planning.collectives import Collective
from maskedlm.planning.compile import Compiled, Pieces, Step, TooLarge
from maskedlm.planning.memory import Sizes, attention_of
from maskedlm.planning.roofline import Estimate
from maskedlm.planning.topologies import Topology
from maskedlm.pretraining import objectives
from maskedlm.pretraining.config import PretrainConfig
from maskedlm.training import sharding
from maskedlm.training.options import MeshOptions
from maskedlm.training.phases import Phase

LABEL = "model, not measured"
_ALONE = MeshOptions(data=1, fsdp=1, tensor=1)
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
    phases: hours and cost are those of all of their rows.
    rows: rows on a chip at a time, instead of the config's; hours and cost are
      still those of the config's rows.
    price: price of a chip-hour; None = no cost.
    search: if the step doesn't fit, search for the largest batch that does.

  Raises:
    ConfigError: the run itself would refuse the config, or the compiler is
      missing or fails.
  """
  config = phases[phase].config
  sizes = sharding.mesh_sizes(config.mesh, topology.num_chips)
  if rows:
    num_rows = rows * _parts(config, sizes)
    config = changed(config, {"data.batch_size": num_rows})
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
    measured = _measure_compiled(step, topology, rounds=rounds, log=log)
  else:
    measured = _estimate(step, sizes, topology)
  if isinstance(measured, TooLarge):
    remedies = find_remedies(config, topology, measured, search=search, log=log)
    return plan(fits=False, bytes_per_chip=measured.needed, remedies=remedies)
  executed = _executed(step, rounds)
  estimate = roofline.estimate_step(
    topology,
    # Kernels may hide some.
    flops=max(executed, model_flops) / topology.num_chips,
    traffic=measured.moved,
    collectives=measured.sent,
    coords=compile.coordinates(step.mesh, topology),
  )
  if measured.program and not topology.is_tpu:
    waited = roofline.exposed(measured.program, topology, measured.sent)
    estimate = estimate._replace(exposed=waited)
  fits = compiled or measured.pieces.peak <= compile.available_bytes(topology)
  return plan(
    fits=fits,
    bytes_per_chip=measured.pieces.peak,
    remedies={} if fits else {"changes": memory_savings(config, topology)},
    pieces=measured.pieces,
    recomputed=recomputed(step, executed, rounds),
    sent=measured.sent,
    estimate=estimate,
    run=_run_cost(phases, step, estimate, topology, price),
  )


class _Measured(NamedTuple):
  """The memory, traffic and collectives of a step on one chip."""

  pieces: Pieces
  moved: memory_traffic.Traffic
  sent: Sequence[Collective]
  program: hlo.Program | None = None  # None if it was not compiled.


def _measure_compiled(
  step: Step, topology: Topology, *, rounds: int, log: Log
) -> _Measured | TooLarge:
  """Compiles a step on a mesh; it may be too large."""
  compiled = _compile(step, topology, log)
  if isinstance(compiled, TooLarge):
    return compiled
  program = hlo.parse_program(compiled.text, rounds)
  return _Measured(
    pieces=compiled.pieces,
    moved=memory_traffic.measure_traffic(program),
    sent=collectives.find_collectives(program, dict(step.mesh.shape)),
    program=program,
  )


def _estimate(step: Step, sizes, topology: Topology) -> _Measured:
  """Estimates a step on a mesh that is not compiled."""
  config = step.config
  rows = _rows_per_chip(config, sizes)
  held = compile.held_bytes(step, Sizes(sizes))
  pieces = estimates.estimate_pieces(
    config, held, rows, platform=topology.platform
  )
  return _Measured(
    pieces=pieces,
    moved=estimates.estimate_traffic(pieces, config.train.accumulate),
    sent=estimates.estimate_collectives(step, sizes),
  )


def _run_cost(
  phases: Sequence[Phase],
  step: Step,
  estimate: Estimate,
  topology: Topology,
  price: float | None,
) -> dict[str, float]:
  """Returns tokens/s of a step, and hours and cost of the rows of the phases.

  Other phases than the step's are assumed to reach the same FLOP/s.
  """
  data = step.config.data
  flops_per_second = step.task.flops(0) / estimate.step
  total, rows = 0.0, 0
  for phase in phases:
    config, count = phase.config, phase.end - phase.begin
    corpus = placeholder_corpus.make_corpus(config.tokenizer)
    total += count * objectives.make_task(config, corpus).flops(0)
    rows += count * config.data.batch_size
  hours = total / flops_per_second / 3600
  figures = {
    "tokens_per_second": data.batch_size * data.length / estimate.step,
    "rows": rows,
    "hours": hours,
    "chip_hours": hours * math.prod(topology.shape),
  }
  if price is not None:
    figures["cost"] = figures["chip_hours"] * price
  return figures


def _step(config, topology: Topology, sizes) -> Step:
  """Returns the step on the topology's devices, or a local one to estimate."""
  if compile.can_compile(topology):
    planned = dataclasses.replace(config, mesh=MeshOptions(**sizes))
    return compile.make_step(planned, compile.devices(topology))
  data = config.data
  sharding.check_batch(data.batch_size, config.train.accumulate, Sizes(sizes))
  traceable = _traceable(config, data.length, topology)
  alone = dataclasses.replace(
    config, mesh=_ALONE, model=dataclasses.replace(config.model, **traceable)
  )
  return compile.make_step(alone, jax.devices()[:1])


def _traceable(
  config: PretrainConfig, length: int, topology: Topology
) -> dict[str, Any]:
  """Returns options of config.model with which a CPU traces the same matmuls.

  Kernels have the matmuls of blockwise attention, and dropout has none.
  """
  cfg = architecture.encoder_config(
    config.model, config.tokenizer.vocab_size, length
  )
  architecture.check_attention(cfg, platform=topology.platform)
  implementation = attention_of(config, length, platform=topology.platform)
  if implementation == "xla":
    return {"attention": "xla"}
  return {"attention": "blockwise", "attention_dropout": 0.0}


def _rounds(step: Step, topology: Topology) -> int:
  """Returns the iterations of blockwise attention's loop, one per block."""
  L = step.config.data.length
  implementation = attention_of(step.config, L, platform=topology.platform)
  return -(-L // blockwise.BLOCK) if implementation == "blockwise" else 1


def _compile(step: Step, topology: Topology, log: Log) -> Compiled | TooLarge:
  mesh = ", ".join(f"{a}={n}" for a, n in step.mesh.shape.items() if n > 1)
  log(
    f"compiling for {topology.name} ({mesh or '1 chip'}), "
    f"{step.config.data.batch_size:,} rows of {step.config.data.length}: "
    "minutes"
  )
  start = time.perf_counter()
  compiled = compile.compile_step(step, topology)
  outcome = "too large" if isinstance(compiled, TooLarge) else "fits"
  log(f"  {time.perf_counter() - start:.0f} s: {outcome}")
  return compiled


def _rows_per_chip(config, sizes) -> int:
  return config.data.batch_size // _parts(config, sizes)


def _parts(config, sizes) -> int:
  """Returns the number of parts of a batch, over chips and microbatches."""
  return sizes["data"] * sizes["fsdp"] * config.train.accumulate


def recomputed(step: Step, executed: float, rounds: int) -> float:
  """Returns the share of the executed FLOPs that are recomputed (remat)."""
  if step.config.model.remat == "none":
    return 0.0
  config = dataclasses.replace(
    changed(step.config, {"model.remat": "none"}), mesh=_ALONE
  )
  plain = compile.make_step(config, [step.mesh.devices.flat[0]])
  return 1 - _executed(plain, rounds) / executed


def _executed(step: Step, rounds: int) -> float:
  state = step.program.state
  # Unwrapped, as a traced function may not have compiler options.
  update = step.program.step.__wrapped__
  return executed_flops.count_executed(
    update, step.mesh, state, step.batch, rounds=rounds
  )


# Remedies for a step that doesn't fit


def find_remedies(
  config, topology: Topology, found: TooLarge, *, search, log: Log
) -> dict[str, Any]:
  """Returns options that save memory and, if `search`, the largest batch."""
  sizes = sharding.mesh_sizes(config.mesh, topology.num_chips)
  parts = _parts(config, sizes)
  rows = _rows_per_chip(config, sizes)
  result: dict[str, Any] = {"changes": memory_savings(config, topology)}
  if not search:
    return result

  def needs(count: int) -> tuple[bool, int]:
    smaller = changed(config, {"data.batch_size": count * parts})
    compiled = _compile(_step(smaller, topology, sizes), topology, log)
    if isinstance(compiled, TooLarge):
      return False, compiled.needed
    return True, compiled.pieces.peak

  log(f"{rows} rows a chip don't fit; looking for the most that do")
  result["largest_rows_per_chip"] = largest_batch(
    needs, rows, found.needed, found.limit
  )
  return result


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
  config: PretrainConfig, topology: Topology
) -> list[dict[str, Any]]:
  """Estimates what other options save: [{option, bytes}], largest first."""
  sizes = sharding.mesh_sizes(config.mesh, topology.num_chips)
  rows = _rows_per_chip(config, sizes)
  alone = dataclasses.replace(config, mesh=_ALONE)
  step = compile.make_step(alone, jax.devices()[:1])

  def total(config: PretrainConfig, sizes) -> int:
    held = compile.held_bytes(step, Sizes(sizes))
    return estimates.estimate_pieces(
      config, held, rows, platform=topology.platform
    ).peak

  current = total(config, sizes)
  savings = []
  for name, value in (
    ("model.dtype", "bfloat16"),
    ("model.remat", "dots"),
    ("model.remat", "full"),
  ):
    saved = current - total(changed(config, {name: value}), sizes)
    savings.append((f"{name}={value}", saved))
  for fsdp in sorted({8, topology.num_chips}):
    if sizes["data"] * sizes["fsdp"] % fsdp == 0 and fsdp > sizes["fsdp"]:
      data = sizes["data"] * sizes["fsdp"] // fsdp
      sharded = {**sizes, "data": data, "fsdp": fsdp}
      savings.append((f"mesh.fsdp={fsdp}", current - total(config, sharded)))
  return [
    {"option": name, "bytes": saved}
    for name, saved in sorted(savings, key=lambda x: -x[1])
    if saved > 0
  ]
