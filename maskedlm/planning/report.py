"""Formats plans as text, as a Markdown table or as figures for JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from maskedlm.core.counts import sized
from maskedlm.planning import collectives, gpus
from maskedlm.planning.planner import LABEL, Plan
from maskedlm.planning.roofline import Estimate
from maskedlm.runtime import console

HOW = f"{gpus.INSTALL} adds a compiler for these GPUs; it needs no GPU."


def plan_figures(plan: Plan) -> dict[str, Any]:
  """Returns the figures that --json prints; unknown ones are None.

  bytes_per_chip is the maximum in use at once or, if the step doesn't fit, what
  it needs; available_bytes is what a run can use. predicted_* come from a model
  and aren't measured.
  """
  estimate = plan.estimate
  chips = plan.topology.num_chips
  peak = plan.topology.chip.flops * chips
  return {
    "fits": plan.fits,
    "chips": chips,
    "bytes_per_chip": plan.bytes_per_chip,
    "hbm_bytes": plan.topology.chip.hbm_bytes,
    "available_bytes": plan.available,
    "collectives": collectives.summarise(plan.sent, plan.num_layers),
    "predicted_mfu": estimate and plan.model_flops / peak / estimate.step,
    "predicted_efficiency": estimate and estimate.efficiency,
    "predictions_are": LABEL,
    "compiled": plan.compiled,
    "topology": plan.topology.name,
    "mesh": plan.mesh,
    "rows_per_chip": plan.rows,
    "length": plan.length,
    "pieces": plan.pieces and plan.pieces._asdict(),
    "flops_per_step": plan.model_flops,
    "recomputed_share": plan.recomputed,
    "predicted_seconds": estimate
    and {**estimate._asdict(), "step": estimate.step},
    **{
      f"predicted_{name}": value
      for name, value in plan.run.items()
      if name != "rows"
    },
    **plan.remedies,
  }


def format_plan(plan: Plan) -> list[str]:
  """Formats a plan as lines of text."""
  topology, chip = plan.topology, plan.topology.chip
  chips = _chips(plan)
  mesh = ", ".join(f"{axis}={n}" for axis, n in plan.mesh.items())
  room = plan.bytes_per_chip / plan.available
  method = "compiled" if plan.compiled else "estimated without compiling"
  text = [
    f"{topology.name}: {chips}, mesh {mesh}; {method}",
    *([] if plan.compiled else [HOW]),
    f"{plan.rows} rows of {plan.length} tokens on a chip "
    f"({plan.rows * plan.length:,} tokens), {plan.model_flops / 1e12:.4g} "
    "TFLOP a step",
    "",
    f"{'fits' if plan.fits else 'DOES NOT FIT':<22}"
    f"{sized(plan.bytes_per_chip)} of {sized(plan.available)} a chip "
    f"({room:.0%})",
  ]
  if plan.available < chip.hbm_bytes:
    share = plan.available / chip.hbm_bytes
    text.append(
      f"  JAX takes {share:.0%} of its {sized(chip.hbm_bytes)}: "
      "XLA_CLIENT_MEM_FRACTION"
    )
  if plan.pieces:
    text += [
      f"  {name:<20}{sized(size)}"
      for name, size in plan.pieces._asdict().items()
      if name != "peak" and size
    ]
  if plan.estimate:
    text += ["", *_traffic(plan), "", *_time(plan, plan.estimate)]
  text += _remedies(plan)
  return text


def _chips(plan: Plan) -> str:
  count = plan.topology.num_chips
  half = "half " if plan.topology.chip.devices == 2 else ""
  return f"{count} {half}chip{'s' * (count > 1)}"


def _traffic(plan: Plan) -> list[str]:
  table = collectives.summarise(plan.sent, plan.num_layers)
  if not table:
    return ["no collectives"]
  rows = (
    (
      row["op"],
      row["axis"],
      f"x{row['count']}",
      sized(row["bytes"]),
      "in the layer scan," if row["in_scan"] else "outside of it,",
      "beside computation" if row["async"] else "waited for",
    )
    for row in table
  )
  lines = console.table(("",) * 6, rows, align="<<<><<")[1:]
  return [
    "collectives of a step, on each chip",
    *(f"  {line}" for line in lines),
  ]


def _time(plan: Plan, e: Estimate) -> list[str]:
  values = plan_figures(plan)
  text = [
    f"time of a step ({LABEL})",
    f"  {'matmuls':<20}{1e3 * e.matmuls:.1f} ms",
    f"  {'memory, of the rest':<20}{1e3 * e.memory:.1f} ms",
    f"  {'collectives':<20}{1e3 * e.exposed:.1f} ms waited for, of "
    f"{1e3 * e.collectives:.1f}",
    f"  {'step':<20}{1e3 * e.step:.1f} ms, at best",
    f"  {'MFU':<20}{values['predicted_mfu']:.1%}",
    f"  {'scaling efficiency':<20}{e.efficiency:.1%} of "
    f"{_chips(plan)} without collectives",
  ]
  if plan.recomputed is not None:
    text.append(
      f"  {'recomputed':<20}{plan.recomputed:.1%} of the FLOPs executed"
    )
  speed = plan.run["tokens_per_second"]
  text.append(f"  {'tokens/s':<20}{speed:,.0f}, padding included")
  return text + _work(plan.run)


def _work(run: Mapping[str, float]) -> list[str]:
  text = [
    f"  {'hours':<20}{run['hours']:.3g} for the config's "
    f"{run['rows']:,} rows, {run['chip_hours']:,.1f} chip-hours"
  ]
  if "cost" in run:
    text.append(f"  {'cost':<20}{run['cost']:,.0f}, at the price given")
  return text


def format_total(plans: Sequence[Plan]) -> list[str]:
  """Formats the total hours, chip-hours and cost of the plans of all phases."""
  runs = [plan.run for plan in plans]
  if not all(runs):
    return ["", "no total: a phase does not fit"]
  total = {name: sum(run[name] for run in runs) for name in runs[0]}
  return ["", f"all {len(plans)} phases", *_work(total)]


def _remedies(plan: Plan) -> list[str]:
  text = []
  rows = plan.remedies.get("largest_rows_per_chip")
  if rows is not None:
    text += [
      "",
      f"the most rows a chip found to fit: {rows}"
      if rows
      else "none of the batches tried fits",
    ]
  if changes := plan.remedies.get("changes"):
    text += ["", "options that save memory on a chip (estimated, not compiled)"]
    text += [
      f"  --config.{change['option']:<28}{sized(change['bytes'])} less"
      for change in changes
    ]
  return text


def compare_plans(plans: Sequence[Plan]) -> list[str]:
  """Formats the plans of a sweep as a Markdown table, a row for each."""
  columns = (
    *("topology", "mesh", "rows a chip", "memory a chip", "sent a step"),
    *("step", "MFU", "efficiency", "tokens/s", "hours", "chip-hours", "cost"),
  )
  rows = []
  for plan in plans:
    mesh = ", ".join(f"{a}={n}" for a, n in plan.mesh.items() if n > 1)
    cells = [
      plan.topology.name,
      mesh or "1 chip",
      plan.rows,
      f"{sized(plan.bytes_per_chip)} of "
      f"{sized(plan.available)}" + ("" if plan.fits else ": does not fit"),
    ]
    if plan.estimate:
      run = plan.run
      sent = sum(c.count * c.bytes for c in plan.sent)
      cells += [
        sized(sent),
        f"{1e3 * plan.estimate.step:,.1f} ms",
        f"{plan_figures(plan)['predicted_mfu']:.0%}",
        f"{plan.estimate.efficiency:.1%}",
        f"{run['tokens_per_second']:,.0f}",
        f"{run['hours']:.3g}",
        f"{run['chip_hours']:,.1f}",
        f"{run['cost']:,.0f}" if "cost" in run else None,
      ]
    rows.append(cells + [None] * (len(columns) - len(cells)))
  text = console.markdown_table(columns, rows, align="<<")
  text += ["", f"Time, MFU, efficiency and cost: {LABEL}."]
  if not all(plan.compiled for plan in plans):
    text.append(f"GPUs are estimated without compiling: {HOW}")
  return text
