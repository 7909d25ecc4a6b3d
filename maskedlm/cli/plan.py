"""`maskedlm plan`: predicts whether a run fits, its speed and its cost.

It compiles the run's own train step for TPUs or GPUs, without needing them
(planning/), and models its time. docs/guides/pretrain/planning.md explains the
output; docs/results/scaling.md has tables of it.
"""

import dataclasses
from typing import Any

from ml_collections import ConfigDict

from maskedlm.cli import shared
from maskedlm.cli.flags import REQUIRED, config_flag, flag
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console


@dataclasses.dataclass(frozen=True)
class Plan:
  """Compiles a config's train step for TPUs or GPUs that need not be here, and
  predicts its memory, the traffic between chips, its time and its cost, at
  best.
  """

  topology: str = flag(
    REQUIRED, "Such as v5e:16x16 or h100:64; with --sweep several, with commas."
  )
  workdir: str | None = shared.workdir(
    "Workdir of a run, to use its config without --config."
  )
  rows: int | None = flag(
    None,
    "Rows on a chip at a time, instead of the config's global batch; hours and "
    "cost are still those of the config's rows.",
    metavar="N",
    low=1,
  )
  phase: int | None = flag(
    None,
    "Plan only this phase of the run, from 1; default: each, and with --sweep "
    "the last.",
    metavar="N",
  )
  price: float | None = flag(
    None, "Price of a chip-hour, to print the cost.", low=0
  )
  sweep: bool = flag(
    False, "Compare topologies, each with the config's mesh and with fsdp."
  )
  json: bool = shared.json("Print only the figures, as JSON.")
  config: Any = config_flag(fits_corpus=True)

  def run(self) -> None:
    """Runs the verb; that nothing fits is no error."""
    import jax

    # Else JAX looks for this machine's accelerator, and none is needed.
    jax.config.update("jax_platforms", "cpu")
    from maskedlm.planning import planner, report
    from maskedlm.planning.topologies import parse_topology
    from maskedlm.pretraining.config import split
    from maskedlm.training import phases

    topologies = [parse_topology(name) for name in self.topology.split(",")]
    if len(topologies) > 1 and not self.sweep:
      raise ConfigError(
        f"--topology={self.topology}: several topologies need --sweep."
      )
    indices = self._phases()
    plans = []
    for topology in topologies:
      for config in self._configs(topology):
        for index in indices:
          run, place = split(config), index
          if len(indices) > 1:  # Each has its own hours, which add up.
            run, place = [run[index]], 0
          plan = planner.make_plan(
            run,
            place,
            topology,
            rows=self.rows,
            price=self.price,
            search=not self.sweep,
            log=console.log,
          )
          plans.append(plan)
    if self.json:
      figures = [report.plan_figures(plan) for plan in plans]
      console.print_json(figures if len(figures) > 1 else figures[0], indent=2)
    elif self.sweep:
      print("\n".join(report.compare_plans(plans)))
    else:
      parts = split(self.config)
      for index, plan in zip(indices, plans, strict=True):
        if len(parts) > 1:
          print(phases.describe_phase(parts, index))
        print("\n".join(report.format_plan(plan)))
      if len(plans) > 1:
        print("\n".join(report.format_total(plans)))

  def _phases(self) -> list[int]:
    """Returns the indices of the phases to plan.

    For a comparison it is only the last, whose rows are the longest.
    """
    from maskedlm.pretraining.config import split

    count = len(split(self.config))
    if self.phase is None:
      return [count - 1] if self.sweep else [*range(count)]
    if not 1 <= self.phase <= count:
      raise ConfigError(
        f"--phase={self.phase}: the run has {counted(count, 'phase')}; "
        f"expected 1 to {count}."
      )
    return [self.phase - 1]

  def _configs(self, topology) -> list[ConfigDict]:
    """Returns the config; to compare also with fsdp over 8 and all chips."""
    from maskedlm.training import sharding

    config, chips = self.config, topology.num_chips
    if not self.sweep:
      return [config]
    configs: dict[tuple, ConfigDict] = {}
    for fsdp in (config.mesh.fsdp, 8, chips):
      other = config.copy_and_resolve_references()
      if fsdp != config.mesh.fsdp:
        if fsdp == -1 or chips % (fsdp * max(config.mesh.tensor, 1)):
          continue
        other.mesh.update(data=-1, fsdp=fsdp)
      sizes = sharding.mesh_sizes(other.mesh, chips)
      configs.setdefault(tuple(sizes.values()), other)
    return list(configs.values())
