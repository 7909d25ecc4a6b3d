"""Finds the collectives of a compiled step in its HLO text.

A collective's bytes are those of the whole array: the sum of an all-reduce, the
result of an all-gather, the input of a reduce-scatter.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.planning import hlo

OPS = (
  "all-reduce",
  "all-gather",
  "reduce-scatter",
  "all-to-all",
  "collective-permute",
)


class Collective(NamedTuple):
  """One instruction, which a step executes prod(trips) times."""

  op: str
  axis: str  # Mesh axes: "data", "data+fsdp"; "" = each chip alone.
  bytes: int  # Bytes of one execution, on each chip of the group.
  trips: tuple[int, ...]  # Iterations of the loops around it.
  is_async: bool  # Runs while the chip computes.
  arrays: tuple[tuple[int, ...], ...]  # Dimensions of each array.
  group: tuple[int, ...]  # Devices of the first group, by mesh position.
  name: str = ""  # Name of the instruction.

  @property
  def count(self) -> int:  # type: ignore[override]
    return math.prod(self.trips)


def find_collectives(
  program: hlo.Program, mesh: Mapping[str, int]
) -> list[Collective]:
  """Returns all collectives of a step.

  Args:
    program: the compiled step.
    mesh: {axis: size}, in the order in which devices are numbered.

  Raises:
    ValueError: a group is along a part of an axis.
  """
  collectives, chained = [], set()
  for visit in hlo.walk(program, into_fusions=True):
    x = visit.instruction
    op = x.opcode.removesuffix("-start")
    if op not in OPS:
      continue
    starts = x.opcode.endswith("-start")
    # XLA:TPU fuses a collective with each matmul that it overlaps with. Each
    # fusion has a copy of it, with the same chain_id.
    if chain := re.search(r'chain_id="(\d+)"', x.attributes):
      if chain[1] in chained:
        continue
      chained.add(chain[1])
    shapes = _results(x) if starts else x.shapes
    group = first_group(x.attributes, math.prod(mesh.values()))
    size = sum(shape.bytes for shape in shapes)
    if op == "reduce-scatter":  # The result is one chip's share.
      size *= len(group)
    if "all-reduce-scatter" in visit.computation:  # XLA:TPU fuses the two.
      op = "reduce-scatter"
    is_async = visit.is_async or starts or bool(chain)
    if '"is_sync":true' in x.attributes:  # XLA:GPU gives these a start, too.
      is_async = False
    collectives.append(
      Collective(
        op,
        axis_of(group, mesh),
        size,
        visit.trips,
        is_async,
        tuple(shape.dims for shape in shapes),
        group,
        x.name,
      )
    )
  return [c for c in collectives if c.axis]


def _results(start: hlo.Instruction) -> tuple[hlo.Shape, ...]:
  """Returns the result shapes of an asynchronous collective."""
  if start.opcode == "all-reduce-start":
    return start.shapes
  # Shapes are (operands, results, scalars that track it).
  arrays = [shape for shape in start.shapes if shape.dims]
  return tuple(arrays[len(arrays) // 2 :])


def first_group(attributes: str, num_devices: int) -> tuple[int, ...]:
  """Returns the devices of the first group; all of them if none is given.

  XLA writes groups in several ways: {{0,1},{2,3}}, [2,2]<=[4],
  [2,2]<=[2,2]T(1,0), mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'},
  source_target_pairs={{0,1},...}.

  Raises:
    ValueError: the group is along a part of an axis.
  """
  if pairs := re.search(r"source_target_pairs=\{(.*?)\}\}", attributes):
    return _chain(re.findall(r"\{(\d+),(\d+)", pairs[1]))
  groups = re.search(r"replica_groups=(.*)", attributes)
  if not groups:
    return tuple(range(num_devices))
  text = groups[1]
  named = re.match(r"mesh\[(.*?)\](?:, device_ids=\((\S*)\))? \{(.*?)\}", text)
  if named:
    axes = re.findall(r"'(\w+)'=(\d+)", named[1])
    chosen = re.findall(r"'(\w+)'", named[3])
    if ":(" in named[3]:
      raise ValueError(f"groups along a part of an axis: {text[:80]}")
    order = _order(named[2] or "", num_devices)
    ids = order.reshape([int(size) for _, size in axes])
    index = tuple(slice(None) if name in chosen else 0 for name, _ in axes)
    return tuple(int(i) for i in ids[index].ravel())
  if iota := re.match(r"\[(\d+),(\d+)\]<=(\S*)", text):
    order = _order(iota[3].rstrip(","), num_devices)
    return tuple(int(i) for i in order.reshape(int(iota[1]), -1)[0])
  listed = re.match(r"\{\{([\d,]*)\}", text)
  if listed and listed[1]:
    return tuple(int(i) for i in listed[1].split(","))
  return tuple(range(num_devices))


def _order(text: str, num_devices: int) -> np.ndarray:
  """Returns device numbers in the order of "[2,4]T(1,0)" or "0,4,1,5"."""
  if match := re.match(r"\[([\d,]+)\](?:T\(([\d,]+)\))?", text):
    ids = np.arange(num_devices).reshape(_integers(match[1]))
    return ids.transpose(_integers(match[2]) if match[2] else None).ravel()
  return np.array(_integers(text)) if text else np.arange(num_devices)


def _integers(text: str) -> list[int]:
  return [int(x) for x in text.split(",")]


def _chain(pairs: Sequence[tuple[str, str]]) -> tuple[int, ...]:
  """Returns the devices of a chain of pairs, from the first pair on."""
  following = {int(a): int(b) for a, b in pairs}
  place = next(iter(following), None)
  chain: list[int] = []
  while place is not None and place not in chain:
    chain.append(place)
    place = following.get(place)
  return tuple(chain)


def axis_of(group: Sequence[int], mesh: Mapping[str, int]) -> str:
  """Returns the mesh axes along which a group's devices differ."""
  places = np.unravel_index(list(group), tuple(mesh.values()))
  axes = zip(mesh, places, strict=True)
  return "+".join(axis for axis, place in axes if len(set(place)) > 1)


def summarise(
  found: Sequence[Collective], num_layers: int
) -> list[dict[str, Any]]:
  """Returns a record for each type of collective, most bytes first.

  `in_scan` is whether it is executed in the scan over the layers, once a layer.
  """
  rows: dict[tuple, list[Collective]] = {}
  for c in found:
    key = (c.op, c.axis, num_layers in c.trips, c.is_async)
    rows.setdefault(key, []).append(c)
  table = [
    {
      "op": op,
      "axis": axis,
      "in_scan": in_scan,
      "async": is_async,
      "count": sum(c.count for c in members),
      "bytes": sum(c.count * c.bytes for c in members),
    }
    for (op, axis, in_scan, is_async), members in rows.items()
  ]
  return sorted(table, key=lambda row: -row["bytes"])
