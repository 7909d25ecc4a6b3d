"""`maskedlm plan`: predicts whether a run fits, its speed and its cost.

It compiles the run's own train step for TPUs or GPUs, without needing them
(planning/), and models its time. docs/guides/pretrain/planning.md explains the
output; docs/results/scaling.md has tables of it.
"""

import argparse
from collections.abc import Sequence

from ml_collections import ConfigDict

from maskedlm.cli import options
from maskedlm.config import existing, overrides
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code, 0 even if nothing fits."""
  args, config = overrides.parse_config(
    _parser(), argv, fit=existing.fit_to_corpus
  )
  options.check_at_least(args, rows=1, price=0)
  _use_cpu()

  from maskedlm.planning import planner, report
  from maskedlm.planning.topologies import parse_topology
  from maskedlm.training import phases

  topologies = [parse_topology(name) for name in args.topology.split(",")]
  if len(topologies) > 1 and not args.sweep:
    raise ConfigError(
      f"--topology={args.topology}: several topologies need --sweep."
    )
  count = len(phases.split(config))
  if args.phase is not None and not 1 <= args.phase <= count:
    raise ConfigError(
      f"--phase={args.phase}: the run has {counted(count, 'phase')}; expected "
      f"1 to {count}."
    )
  # All phases; for a comparison only the last, whose rows are the longest.
  indices = [count - 1] if args.sweep else range(count)
  if args.phase is not None:
    indices = [args.phase - 1]
  plans = []
  for topology in topologies:
    for each in _meshes(config, topology) if args.sweep else [config]:
      for index in indices:
        plan = planner.make_plan(
          phases.split(each),
          index,
          topology,
          rows=args.rows,
          price=args.price,
          search=not args.sweep,
          log=console.log,
        )
        plans.append(plan)
  if args.json:
    made = [report.plan_figures(plan) for plan in plans]
    console.print_json(made if len(made) > 1 else made[0], indent=2)
    return 0
  if args.sweep:
    print("\n".join(report.compare_plans(plans)))
    return 0
  for index, plan in zip(indices, plans, strict=True):
    if count > 1:
      print(phases.describe_phase(phases.split(config), index))
    print("\n".join(report.format_plan(plan)))
  return 0


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog="maskedlm plan",
    description="Compiles a config's train step for TPUs or GPUs that need "
    "not be here, and predicts its memory, the traffic between chips, its time "
    "and its cost, at best.",
  )
  parser.add_argument(
    "--topology",
    required=True,
    help="e.g. v5e:16x16 or h100:64; with --sweep several, with commas",
  )
  parser.add_argument(
    "--workdir", help="workdir of a run, to use its config without --config"
  )
  parser.add_argument(
    "--rows",
    type=int,
    metavar="N",
    help="rows on a chip at a time, instead of the config's global batch; "
    "hours and cost are still those of the config's rows",
  )
  parser.add_argument(
    "--phase",
    type=int,
    metavar="N",
    help="plan only this phase of the run, from 1; default: each, and with "
    "--sweep the last",
  )
  parser.add_argument(
    "--price", type=float, help="price of a chip-hour, to print the cost"
  )
  parser.add_argument(
    "--sweep",
    action="store_true",
    help="compare topologies, each with the config's mesh and with fsdp",
  )
  options.add_json(parser, "print only the figures, as JSON")
  return parser


def _use_cpu() -> None:
  """Keeps JAX from looking for this machine's accelerator: none is needed."""
  import jax

  jax.config.update("jax_platforms", "cpu")


def _meshes(config: ConfigDict, topology) -> list[ConfigDict]:
  """Returns copies of the config: its mesh, and fsdp over 8 and all chips."""
  from maskedlm.training import sharding

  chips = topology.num_chips
  found = {}
  for fsdp in (config.mesh.fsdp, 8, chips):
    other = config.copy_and_resolve_references()
    if fsdp != config.mesh.fsdp:
      if fsdp == -1 or chips % (fsdp * max(config.mesh.tensor, 1)):
        continue
      other.mesh.update(data=-1, fsdp=fsdp)
    sizes = sharding.mesh_sizes(other.mesh, chips)
    found.setdefault(tuple(sizes.values()), other)
  return list(found.values())
