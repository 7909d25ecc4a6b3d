"""Counts the bytes that a compiled step moves through a chip's memory (HBM).

Each operation reads its operands and writes its results once, unless they are
in the fast memory next to the cores. A fusion is one operation; if it only
slices an array, or updates it in place, the slice counts. GPU caches are
ignored, though a small array might stay in one between two operations.
"""

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from maskedlm.planning import hlo
from maskedlm.planning.collectives import OPS

# Operations that move nothing; the body of a loop is counted separately.
_FREE = {
  "parameter",
  "constant",
  "tuple",
  "get-tuple-element",
  "bitcast",
  "while",
  "call",
  "conditional",
  "after-all",
  "partition-id",
  "async-start",
}
_FREE_CALLS = ("AllocateBuffer", "ConcatBitcast", "AssumeGatherIndices")
_MATMULS = {"convolution", "dot"}
# Kernels of Pallas (TPU, Triton, Mosaic GPU) and of NVIDIA's libraries.
_KERNELS = re.compile(
  r'custom_call_target="(tpu_custom_call|mosaic_gpu|__gpu\$|triton_kernel|'
  r"__cu(blas|dnn)\$)"
)


class Operation(NamedTuple):
  """The work of one instruction in a step, on one chip."""

  bytes: int
  multiplies: bool  # Whether it has, or may have, a matmul.
  flops: float  # 0 = none, or unknown.


class Traffic(NamedTuple):
  """Bytes that a step moves on one chip."""

  matmuls: int  # Bytes of operations with matmuls whose FLOPs are unknown.
  others: int  # Bytes of operations without matmuls.
  counted: tuple[Operation, ...] = ()  # Operations with known FLOPs.


def measure_traffic(program: hlo.Program) -> Traffic:
  """Returns the traffic of a step on one chip."""
  matmuls = others = 0
  counted = []
  for visit in hlo.walk(program):
    operation = find_operation(program, visit)
    if operation.flops:
      counted.append(operation)
    elif operation.multiplies:
      matmuls += operation.bytes
    else:
      others += operation.bytes
  return Traffic(matmuls, others, tuple(counted))


def find_operation(program: hlo.Program, visit: hlo.Visit) -> Operation:
  """Returns an instruction's work in a step, counting its repeats in loops."""
  times = math.prod(visit.trips)
  return Operation(
    times * _bytes(program, visit),
    _multiplies(program, visit.instruction),
    times * _flops(program, visit.instruction, visit.computation),
  )


def _bytes(program: hlo.Program, visit: hlo.Visit) -> int:
  x = visit.instruction
  if x.opcode in _FREE or x.opcode.endswith("-done"):
    return 0
  if any(name in x.attributes for name in _FREE_CALLS):
    return 0
  if x.opcode.removesuffix("-start") in OPS:
    return 0  # The links limit it, not HBM.
  known = program.computations[visit.computation]
  if x.opcode in ("slice-start", "copy-start"):
    # Their results are (whole, slice, context) and (to, from, context).
    to = x.shapes[1 if x.opcode == "slice-start" else 0]
    source = known[x.operands[0]].shapes if x.operands[0] in known else ()
    return to.bytes * sum(not s.on_chip for s in (*source[:1], to))
  names = x.operands
  if x.opcode == "custom-call":  # An array passed twice is read in two parts.
    names = tuple(dict.fromkeys(names))
  operands = [_hbm(known[name]) if name in known else 0 for name in names]
  if x.opcode == "fusion":
    inside = program.computations[x.calls("calls")[0]]
    return sum(
      int(min(size, limit))  # A limit may be infinite.
      for size, limit in zip(
        [*operands, _hbm(x)],
        [*_reads(inside, len(operands)), _writes(inside)],
        strict=True,
      )
    )
  if x.opcode == "dynamic-slice":
    return 2 * _hbm(x)
  if x.opcode == "dynamic-update-slice":
    return 2 * operands[1]
  if x.opcode == "gather":
    return 2 * _hbm(x) + operands[1]
  return sum(operands) + _hbm(x)


def _hbm(x: hlo.Instruction) -> int:
  return sum(shape.bytes for shape in x.shapes if not shape.on_chip)


def _reads(inside: Mapping[str, hlo.Instruction], count: int) -> list[float]:
  """Returns the maximum bytes that a fusion reads from each parameter."""
  users: dict[str, list[hlo.Instruction]] = {}
  for x in inside.values():
    for name in x.operands:
      users.setdefault(name, []).append(x)

  def read(x: hlo.Instruction) -> float:
    total = 0.0
    for user in users.get(x.name, []):
      first = user.operands[0] == x.name
      if user.opcode == "bitcast":
        total += read(user)
      elif user.opcode in ("dynamic-slice", "slice", "gather") and first:
        total += sum(shape.bytes for shape in user.shapes)
      elif user.opcode == "dynamic-update-slice" and first:
        total += 0  # In place.
      else:
        return math.inf
    return total

  limits = [math.inf] * count
  for x in inside.values():
    if x.opcode == "parameter":
      place = int(x.attributes)
      if place < count:
        limits[place] = read(x)
  return limits


def _writes(inside: Mapping[str, hlo.Instruction]) -> float:
  """Returns the maximum bytes that a fusion writes; in place, the update's."""
  root = next(x for x in inside.values() if x.is_root)
  outputs = [root]
  if root.opcode == "tuple":
    outputs = [inside[name] for name in root.operands]
  total = 0
  for x in outputs:
    while x.opcode in ("bitcast", "convert") and x.operands[0] in inside:
      x = inside[x.operands[0]]
    if x.opcode == "dynamic-update-slice" and x.operands[1] in inside:
      x = inside[x.operands[1]]
    total += sum(shape.bytes for shape in x.shapes)
  return total


def _multiplies(program: hlo.Program, x: hlo.Instruction) -> bool:
  if x.opcode == "fusion":
    inside = program.computations[x.calls("calls")[0]]
    return any(_multiplies(program, y) for y in inside.values())
  return x.opcode in _MATMULS or (
    x.opcode == "custom-call" and bool(_KERNELS.search(x.attributes))
  )


def _flops(program: hlo.Program, x: hlo.Instruction, computation: str) -> float:
  """Returns the FLOPs of dots; TPU convolutions, without dimensions, give 0."""
  if x.opcode == "fusion":
    (name,) = x.calls("calls")
    inside = program.computations[name].values()
    return sum(_flops(program, y, name) for y in inside)
  if x.opcode != "dot" and "__cublas$" not in x.attributes:
    return 0.0
  contracted = re.search(
    r'lhs_contracting_dim(?:s=\{|ensions": ?\[)([\d,"]*)', x.attributes
  )
  if contracted is None:
    return 0.0
  left = program.computations[computation][x.operands[0]].shapes[0].dims
  inner = [left[int(i)] for i in re.findall(r"\d+", contracted[1])]
  return 2.0 * math.prod(inner) * math.prod(x.shapes[0].dims)
