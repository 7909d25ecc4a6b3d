"""Hours and cost of a whole run, from the time of one of its steps."""

import math
from collections.abc import Sequence

from maskedlm.data.batches import placeholder_corpus
from maskedlm.planning.compile import Step
from maskedlm.planning.roofline import Estimate
from maskedlm.planning.topologies import Topology
from maskedlm.pretraining import objectives
from maskedlm.training.phases import Phase


def run_cost(
  phases: Sequence[Phase],
  step: Step,
  estimate: Estimate,
  topology: Topology,
  price: float | None,
) -> dict[str, float]:
  """Returns tokens/s of a step, and hours and cost of the rows of the phases.

  Other phases than the step's are assumed to reach the same FLOP/s. The price
  is that of a chip-hour; None = no cost.
  """
  chips, data = math.prod(topology.shape), step.config.data
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
