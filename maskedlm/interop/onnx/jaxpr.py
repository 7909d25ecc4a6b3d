"""Translates a jaxpr, JAX's form of a program, into an ONNX graph.

`translate` walks through the equations, and into the programs that they call.
Equations that don't depend on the inputs, such as those that reshape weights,
are computed at once; loops over layers are unrolled, those over tokens become
ONNX's Scan. primitives.py has the translations.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.core import Literal

from maskedlm.interop.onnx import functions, primitives
from maskedlm.interop.onnx.graph import Graph, Value, unsupported

# The parameter of an equation that is the program that it calls.
_CALLED = ("jaxpr", "call_jaxpr", "fun_jaxpr")


def translate(graph: Graph, jaxpr, consts: Sequence, inputs: Sequence) -> list:
  """Adds a program to a graph; returns the operands of its results.

  There is an array in `consts` for each of its constvars, and an operand in
  `inputs` for each invar.

  Raises:
    InteropError: a part of it has no translation.
  """
  values: dict[Any, Any] = {}  # Variable -> operand.

  def read(x):
    if isinstance(x, Literal):
      return np.asarray(x.val, x.aval.dtype)
    return values[x]

  values |= zip(jaxpr.constvars, map(np.asarray, consts), strict=True)
  values |= zip(jaxpr.invars, inputs, strict=True)
  for equation in jaxpr.eqns:
    results = _translate(graph, equation, list(map(read, equation.invars)))
    values |= zip(equation.outvars, results, strict=True)
  return list(map(read, jaxpr.outvars))


def _translate(graph: Graph, equation, operands: list) -> list:
  """Adds an equation to a graph; returns the operands of its results."""
  name, params = equation.primitive.name, equation.params
  if name == "scan":
    return _loop(graph, equation, operands)
  called = next((params[key] for key in _CALLED if key in params), None)
  if called is not None:
    return _call(graph, called, operands)
  if _is_known(equation, operands):
    return _compute(graph, equation, operands)
  if name not in primitives.PRIMITIVES:
    raise unsupported(f"the operation {name}")
  results = primitives.PRIMITIVES[name](graph, equation, *operands)
  return results if isinstance(results, list) else [results]


def _is_known(equation, operands: list) -> bool:
  """Returns whether an equation does not depend on the inputs."""
  shapes = [x.aval.shape for x in (*equation.invars, *equation.outvars)]
  dims = [*itertools.chain(*shapes), equation.params.get("dim", 0)]
  return all(isinstance(x, np.ndarray) for x in operands) and all(
    isinstance(dim, int) for dim in dims
  )


def _call(graph: Graph, called, operands: list) -> list:
  """Adds a call, as one operator if ONNX has the function."""
  is_closed = hasattr(called, "consts")
  jaxpr = called.jaxpr if is_closed else called
  consts = called.consts if is_closed else ()
  translation = functions.FUNCTIONS.get(jaxpr.debug_info.func_name)
  result = translation(graph, jaxpr, *operands) if translation else None
  if result is None:
    return translate(graph, jaxpr, consts, operands)
  return [result]


def _loop(graph: Graph, equation, operands: list) -> list:
  """Adds a loop: its body once for each layer, with its weights, or a Scan.

  Its operands are constants, a carry, and arrays with a row for each step; its
  results, the last carry and rows. How many there are of each follows from the
  shapes, as the names of the parameters differ between versions of JAX.
  """
  params, body = equation.params, equation.params["jaxpr"]
  jaxpr = body.jaxpr
  pairs = zip(equation.invars, jaxpr.invars, strict=True)
  last = len(operands) - sum(x.aval.shape != y.aval.shape for x, y in pairs)
  outputs = zip(equation.outvars, jaxpr.outvars, strict=True)
  first = last - sum(x.aval.shape == y.aval.shape for x, y in outputs)
  consts, carry, rows = operands[:first], operands[first:last], operands[last:]
  if len(carry) < len(jaxpr.outvars) or not all(
    isinstance(x, np.ndarray) for x in rows
  ):
    return _scan(graph, equation, operands, first)
  for i in range(params["length"])[:: -1 if params["reverse"] else 1]:
    step_operands = [*consts, *carry, *(x[i] for x in rows)]
    carry = translate(graph, jaxpr, body.consts, step_operands)
  return carry


def _scan(graph: Graph, equation, operands: list, first: int) -> list:
  """Adds a loop over tokens, whose first operands are constants."""
  body, scanned = equation.params["jaxpr"], equation.invars[first:]
  if equation.params["reverse"]:
    raise unsupported("a loop over tokens from their end")
  spread_operands = [
    graph.spread(x, variable.aval.shape)
    for x, variable in zip(operands[first:], scanned, strict=True)
  ]
  inner = graph.inner()
  inputs = [
    inner.value(f"input_{i}", x.aval)
    for i, x in enumerate(body.jaxpr.invars[first:])
  ]
  consts = operands[:first]
  results = translate(inner, body.jaxpr, body.consts, [*consts, *inputs])
  spread_results = [
    inner.spread(x, variable.aval.shape)
    for x, variable in zip(results, body.jaxpr.outvars, strict=True)
  ]
  outputs = [
    inner.value(f"output_{i}", x.aval) for i, x in enumerate(body.jaxpr.outvars)
  ]
  pairs = zip(scanned, body.jaxpr.invars[first:], strict=True)
  names = graph.outputs(
    "Scan",
    spread_operands,
    len(outputs),
    body=inner.body(inputs, spread_results, outputs),
    num_scan_inputs=sum(x.aval.shape != y.aval.shape for x, y in pairs),
  )
  return [
    Value(name, variable.aval.shape, variable.aval.dtype)
    for name, variable in zip(names, equation.outvars, strict=True)
  ]


def _compute(graph: Graph, equation, operands: list) -> list:
  """Returns the results of an equation whose operands are arrays, as arrays."""
  arrays = [
    graph.spread(x, variable.aval.shape)
    for x, variable in zip(operands, equation.invars, strict=True)
  ]
  results = equation.primitive.bind(*arrays, **equation.params)
  results = results if equation.primitive.multiple_results else [results]
  return list(map(np.asarray, results))
