"""How long a step takes at best: a model, not a measurement.

  matmuls    the larger of FLOPs / peak and the bytes they move / HBM bandwidth:
             of each where the program says its FLOPs (GPUs), else of all
  the rest   bytes moved / HBM bandwidth
  collectives, each on its own: what the slowest link carries / its bandwidth,
             and 1 us a hop; those that run beside computation cost nothing as
             long as there is as much of that. On GPUs: of that which the
             program does between their start and their end.

The FLOPs are those executed (flops.py), what is computed again included; bytes
are read from the compiled program (traffic.py). What a chip really loses to
fusions that don't reach its bandwidth, to padding and to waiting isn't in here:
read the result as what can't be beaten.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.planning import hlo
from maskedlm.planning.collectives import Collective
from maskedlm.planning.memory_traffic import Operation, Traffic, operation
from maskedlm.planning.topologies import Topology
from maskedlm.runtime.chips import Chip

HOP_SECONDS = 1e-6  # jax-ml.github.io/scaling-book, "TPUs", on latency.


class Estimate(NamedTuple):
  """Of one step, in seconds."""

  matmuls: float
  memory: float  # Of all else that goes through HBM.
  collectives: float  # All of them.
  exposed: float  # Those that nothing hides.

  @property
  def step(self) -> float:
    return self.matmuls + self.memory + self.exposed

  @property
  def efficiency(self) -> float:
    """Of this many chips, against as many that send each other nothing."""
    return 1 - self.exposed / self.step


def estimate(
  topology: Topology,
  *,
  flops: float,
  traffic: Traffic,
  collectives: Sequence[Collective],
  coords: Sequence[tuple[int, ...]] = (),
) -> Estimate:
  """The time of a step.

  Args:
    topology: the chips.
    flops: executed by one chip.
    traffic: of one chip.
    collectives: of the step.
    coords: where each device of the mesh lies on the torus (TPUs).
  """
  chip = topology.chip
  counted = sum(x.flops for x in traffic.counted)
  rest = Operation(traffic.matmuls, True, max(0.0, flops - counted))
  matmuls = sum(operation_seconds(x, chip) for x in (*traffic.counted, rest))
  memory = traffic.others / chip.hbm_bandwidth
  waited = hidden = 0.0
  for c in collectives:
    seconds = c.count * collective_seconds(c, topology, coords)
    if c.is_async:
      hidden += seconds
    else:
      waited += seconds
  exposed = waited + max(0.0, hidden - matmuls - memory)
  return Estimate(matmuls, memory, waited + hidden, exposed)


def operation_seconds(x: Operation, chip: Chip) -> float:
  """One operation, bound by the FLOPs or by memory."""
  return max(x.flops / chip.flops, x.bytes / chip.hbm_bandwidth)


def exposed(
  program: hlo.Program, topology: Topology, collectives: Sequence[Collective]
) -> float:
  """Seconds in which a GPU waits for collectives, in the program's order.

  Two queues: operations and collectives, each in order. One that is started
  goes on beside what stands before its end.
  """
  sent = {c.name: c for c in collectives}
  clock = link = computed = 0.0
  ends: dict[str, float] = {}
  starting = ""
  for visit in hlo.walk(program):
    x = visit.instruction
    if x.opcode == "async-start":  # What it starts is visited next.
      starting = x.name
    elif c := sent.get(x.name):
      link = max(clock, link) + c.count * collective_seconds(c, topology, ())
      if c.is_async:
        ends[starting if visit.is_async else x.name] = link
      else:
        clock = link
    elif x.opcode.endswith("-done"):
      clock = max(clock, ends.get(x.operands[0], 0.0))
    else:
      spent = operation_seconds(operation(program, visit), topology.chip)
      clock += spent
      computed += spent
  return clock - computed


# What each link carries, of the bytes; an all-reduce is a reduce-scatter and an
# all-gather. All-to-all: a quarter of an all-gather's on a ring.
_SHARES = {
  "all-reduce": 2.0,
  "all-gather": 1.0,
  "reduce-scatter": 1.0,
  "all-to-all": 0.25,
}


def collective_seconds(
  c: Collective, topology: Topology, coords: Sequence[tuple[int, ...]]
) -> float:
  """One execution of a collective."""
  n = len(c.group)
  if c.op == "collective-permute":
    return c.bytes / topology.chip.link_bandwidth + HOP_SECONDS
  carried = c.bytes * _SHARES[c.op] * (n - 1) / n
  if not topology.is_tpu:
    return carried / _gpu_bandwidth(topology.chip, c.group)
  rings, hops = _rings(topology, [coords[i] for i in c.group])
  seconds = carried / (rings * topology.chip.link_bandwidth)
  return seconds + math.ceil(_SHARES[c.op]) * hops * HOP_SECONDS


def _rings(topology: Topology, places) -> tuple[int, int]:
  """(links that a chip sends on at once, hops to the farthest chip).

  Along each dimension in which the group extends, data go around in both
  directions if it wraps; on a line each end has one neighbour only.
  """
  extents = [len(set(x)) for x in np.transpose(places)]
  rings = hops = 0
  sizes = zip(extents, topology.shape, topology.wraps, strict=False)
  for extent, size, wraps in sizes:
    if extent == 1:
      continue
    whole = wraps and extent == size
    rings += 2 if whole else 1
    hops += extent // 2 if whole else extent - 1
  return max(rings, 1), max(hops, 1)


def _gpu_bandwidth(chip: Chip, group: Sequence[int]) -> float:
  """Within a node all links; across nodes each GPU has its own adapter.

  Ranks are numbered node by node. A group of one GPU a node uses one adapter;
  one that has whole nodes shares its bytes out among theirs.
  """
  nodes: dict[int, int] = {}
  for rank in group:
    node = rank // chip.node_size
    nodes[node] = nodes.get(node, 0) + 1
  if len(nodes) == 1:
    return chip.link_bandwidth
  return min(chip.link_bandwidth, chip.network_bandwidth * min(nodes.values()))
