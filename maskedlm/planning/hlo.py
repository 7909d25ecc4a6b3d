"""Parses the text (HLO) of a compiled program, as far as a plan needs it.

A program has computations, which have instructions, which may call other
computations. `walk` yields all executed instructions, with the loops around
them. This module needs no jax.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_BITS = {"pred": 8, "token": 0, "opaque": 0, "s4": 4, "u4": 4}


class Shape(NamedTuple):
  """The type of one array."""

  dtype: str
  dims: tuple[int, ...]
  on_chip: bool  # In the fast memory next to the cores (S(1)), not in HBM.

  @property
  def bytes(self) -> int:
    width = re.search(r"\d+", self.dtype)  # bf16, f8e4m3fn, u32.
    bits = _BITS.get(self.dtype, int(width[0]) if width else 8)
    for size in self.dims:
      bits *= size
    return -(-bits // 8)


class Instruction(NamedTuple):
  """%name = shapes opcode(operands), attributes."""

  name: str
  shapes: tuple[Shape, ...]  # Several if the result is a tuple.
  opcode: str
  operands: tuple[str, ...]
  attributes: str
  is_root: bool

  def calls(self, *kinds: str) -> list[str]:
    """Returns the computations that attributes such as calls=, body= name."""
    names = []
    for kind in kinds:
      pattern = rf"\b{kind}=(\{{[^}}]*\}}|%[\w.\-]+)"
      for value in re.findall(pattern, self.attributes):
        names += re.findall(r"%([\w.\-]+)", value)
    return names


class Program(NamedTuple):
  """A compiled program."""

  # Computation name -> its instructions by name, in order.
  computations: Mapping[str, Mapping[str, Instruction]]
  entry: str  # Name of the first computation executed.
  rounds: int = 1  # Iterations of a loop without a fixed number.


class Visit(NamedTuple):
  """An executed instruction."""

  instruction: Instruction
  computation: str
  trips: tuple[int, ...]  # Iterations of the loops around it, outermost first.
  is_async: bool  # In a computation that overlaps with others.


def parse_program(text: str, rounds: int = 1) -> Program:
  """Parses the text of a compiled program, from compiled.as_text().

  Args:
    rounds: iterations of a loop without a fixed number.

  Raises:
    ValueError: the text has no entry computation.
  """
  computations: dict[str, dict[str, Instruction]] = {}
  entry, current = "", None
  for line in text.splitlines():
    header = re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{\s*$", line)
    if header:
      current = computations[header[2]] = {}
      entry = header[2] if header[1] else entry
    elif current is not None and (instruction := _instruction(line)):
      current[instruction.name] = instruction
  if not entry:
    raise ValueError("no ENTRY computation in this HLO text")
  return Program(computations, entry, rounds)


def walk(program: Program, *, into_fusions: bool = False) -> Iterator[Visit]:
  """Yields all executed instructions, depth first, following calls.

  A fusion is one operation; its inside is visited if `into_fusions`.
  """
  yield from _walk(program, program.entry, (), False, into_fusions)


def trip_count(program: Program, loop: Instruction) -> int:
  """Returns a while loop's iterations, or program.rounds if not fixed."""
  if match := re.search(r'known_trip_count":\{"n":"(\d+)"', loop.attributes):
    return int(match[1])
  (condition,) = loop.calls("condition")
  # A counted loop compares its counter with a constant.
  limits = [
    int(x.attributes)
    for x in program.computations[condition].values()
    if x.opcode == "constant" and x.attributes.isdecimal()
  ]
  return max(limits, default=program.rounds)


def _walk(program, name, trips, is_async, into_fusions) -> Iterator[Visit]:
  for x in program.computations[name].values():
    yield Visit(x, name, trips, is_async)
    callees, callee_trips, callee_async = [], trips, is_async
    if x.opcode == "while":
      callees = x.calls("body")
      callee_trips = (*trips, trip_count(program, x))
    elif x.opcode in ("call", "conditional"):
      callees = x.calls(
        "to_apply",
        "called_computations",
        "branch_computations",
        "true_computation",
        "false_computation",
      )
    elif x.opcode == "async-start":
      callees, callee_async = x.calls("calls", "to_apply"), True
    elif x.opcode == "fusion" and into_fusions:
      callees = x.calls("calls")
    for callee in callees:
      yield from _walk(
        program, callee, callee_trips, callee_async, into_fusions
      )


def _instruction(line: str) -> Instruction | None:
  match = re.match(r"\s+(ROOT )?%?([\w.\-]+) = ", line)
  if not match:
    return None
  rest = line[match.end() :]
  end = _closing(rest) if rest.startswith("(") else rest.index(" ")
  shapes, rest = rest[:end], rest[end:].lstrip()
  opcode, _, rest = rest.partition("(")
  if opcode == "call-start":  # How XLA abbreviates the async-start of a call.
    opcode = "async-start"
  end = _closing(f"({rest}") - 1
  operands, attributes = rest[: end - 1], rest[end:].lstrip(", ")
  if opcode in ("constant", "parameter"):  # Their value or number.
    attributes = operands[: end - 1]
  return Instruction(
    match[2],
    tuple(_shapes(shapes)),
    opcode,
    tuple(re.findall(r"%([\w.\-]+)", operands)),
    attributes,
    bool(match[1]),
  )


def _closing(text: str) -> int:
  """Returns the index after the match of the parenthesis at text[0]."""
  depth = 0
  for i, letter in enumerate(text):
    depth += (letter == "(") - (letter == ")")
    if not depth:
      return i + 1
  return len(text)


def _shapes(text: str) -> Iterator[Shape]:
  pattern = r"([a-z]\w*)\[([\d,<=]*)\](\{[^}]*\})?"
  for dtype, dims, layout in re.findall(pattern, text):
    sizes = tuple(int(x.strip("<=")) for x in dims.split(",") if x)
    yield Shape(dtype, sizes, "S(1)" in layout)
