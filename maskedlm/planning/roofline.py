"""Predicts how long a step takes at best: a model, not a measurement.

  matmuls    the larger of FLOPs / peak and bytes moved / HBM bandwidth: for
             each one if the program gives its FLOPs (GPUs), else for their sum
  the rest   bytes moved / HBM bandwidth
  collectives, each separately: bytes on the slowest link / its bandwidth, and
             1 us a hop. Asynchronous ones are free as long as they overlap
             with computation: on TPUs with all of it, on GPUs with what the
             program does between their start and their end.

The FLOPs are those executed, recomputation included (executed_flops.py); bytes
are read from the compiled program (memory_traffic.py). Real losses to slow
fusions, padding and waiting aren't modelled: the result is a lower bound.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.planning import hlo
from maskedlm.planning.collectives import Collective
from maskedlm.planning.memory_traffic import Operation, Traffic, find_operation
from maskedlm.planning.topologies import Topology
from maskedlm.runtime.chips import Chip

HOP_SECONDS = 1e-6  # jax-ml.github.io/scaling-book, "TPUs", on latency.


class Estimate(NamedTuple):
  """Seconds of one step."""

  matmuls: float
  memory: float  # Everything else that goes through HBM.
  collectives: float  # All collectives.
  exposed: float  # Collectives that don't overlap with computation.

  @property
  def step(self) -> float:
    return self.matmuls + self.memory + self.exposed

  @property
  def efficiency(self) -> float:
    """Speed relative to as many chips without communication."""
    return 1 - self.exposed / self.step


def estimate_step(
  topology: Topology,
  *,
  flops: float,
  traffic: Traffic,
  collectives: Sequence[Collective],
  coords: Sequence[tuple[int, ...]] = (),
) -> Estimate:
  """Predicts the time of a step.

  FLOPs and traffic are of one chip; `coords` are the positions of the mesh's
  devices on the torus (TPUs).
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
  """Returns the seconds of one operation, bound by FLOPs or by memory."""
  return max(x.flops / chip.flops, x.bytes / chip.hbm_bandwidth)


def exposed(
  program: hlo.Program, topology: Topology, collectives: Sequence[Collective]
) -> float:
  """Returns the seconds that a GPU waits for collectives, in program order.

  Operations and collectives are two queues, each in order. A collective
  overlaps with the operations between its start and its end.
  """
  sent = {c.name: c for c in collectives}
  clock = link = computed = 0.0
  ends: dict[str, float] = {}
  starting = ""
  for visit in hlo.walk(program):
    x = visit.instruction
    if x.opcode == "async-start":  # The collective itself is visited next.
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
      spent = operation_seconds(find_operation(program, visit), topology.chip)
      clock += spent
      computed += spent
  return clock - computed


# The share of the bytes that each link carries. An all-reduce is a
# reduce-scatter and an all-gather; an all-to-all carries a quarter of an
# all-gather's bytes on a ring.
_SHARES = {
  "all-reduce": 2.0,
  "all-gather": 1.0,
  "reduce-scatter": 1.0,
  "all-to-all": 0.25,
}


def collective_seconds(
  c: Collective, topology: Topology, coords: Sequence[tuple[int, ...]]
) -> float:
  """Returns the seconds of one execution of a collective."""
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
  """Returns (links that a chip sends on at once, hops to the farthest chip).

  Along each dimension of the group, data goes around in both directions if it
  wraps; on a line the ends have only one neighbour.
  """
  extents = [len(set(x)) for x in np.transpose(places)]
  rings = hops = 0
  sizes = zip(extents, topology.shape, topology.wraps, strict=False)
  for extent, size, wraps in sizes:
    if extent == 1:
      continue
    is_ring = wraps and extent == size
    rings += 2 if is_ring else 1
    hops += extent // 2 if is_ring else extent - 1
  return max(rings, 1), max(hops, 1)


def _gpu_bandwidth(chip: Chip, group: Sequence[int]) -> float:
  """Returns a GPU's bytes/s over its links in a node, or over the network.

  Ranks are numbered node by node. A group with one GPU a node uses one adapter
  of each; a group of whole nodes splits its bytes among all their adapters.
  """
  nodes: dict[int, int] = {}
  for rank in group:
    node = rank // chip.node_size
    nodes[node] = nodes.get(node, 0) + 1
  if len(nodes) == 1:
    return chip.link_bandwidth
  return min(chip.link_bandwidth, chip.network_bandwidth * min(nodes.values()))
