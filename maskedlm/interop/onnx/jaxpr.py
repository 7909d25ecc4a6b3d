"""Translates a jaxpr, JAX's form of a program, into an ONNX graph.

`translate` walks through the equations, and into the programs that they call.
What is known already, such as the weights in the layout of a layer, is computed
at once; loops over layers are unrolled, those over tokens are ONNX's Scan.
primitives.py has the translations.
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

  It has an array for each of its constvars, and an operand for each invar.

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
    made = _translate(graph, equation, list(map(read, equation.invars)))
    values |= zip(equation.outvars, made, strict=True)
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
  made = primitives.PRIMITIVES[name](graph, equation, *operands)
  return made if isinstance(made, list) else [made]


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
  known = functions.FUNCTIONS.get(jaxpr.debug_info.func_name)
  made = known(graph, jaxpr, *operands) if known else None
  return translate(graph, jaxpr, consts, operands) if made is None else [made]


def _loop(graph: Graph, equation, operands: list) -> list:
  """Adds a loop: its body once for each layer, with its weights, or a Scan.

  Its operands are constants, what a step hands to the next, and what has a row
  for each step; its results, what the last step hands on, and rows. Their
  numbers are read off the shapes, as the names of the parameters differ between
  versions of JAX.
  """
  params, body = equation.params, equation.params["jaxpr"]
  jaxpr = body.jaxpr
  pairs = zip(equation.invars, jaxpr.invars, strict=True)
  last = len(operands) - sum(x.aval.shape != y.aval.shape for x, y in pairs)
  made = zip(equation.outvars, jaxpr.outvars, strict=True)
  first = last - sum(x.aval.shape == y.aval.shape for x, y in made)
  consts, carry, rows = operands[:first], operands[first:last], operands[last:]
  if len(carry) < len(jaxpr.outvars) or not all(
    isinstance(x, np.ndarray) for x in rows
  ):
    return _scan(graph, equation, operands, first)
  for i in range(params["length"])[:: -1 if params["reverse"] else 1]:
    given = [*consts, *carry, *(x[i] for x in rows)]
    carry = translate(graph, jaxpr, body.consts, given)
  return carry


def _scan(graph: Graph, equation, operands: list, first: int) -> list:
  """Adds a loop over tokens, whose first operands are constants."""
  body, given = equation.params["jaxpr"], equation.invars[first:]
  if equation.params["reverse"]:
    raise unsupported("a loop over tokens from their end")
  whole = [
    graph.spread(x, of.aval.shape)
    for x, of in zip(operands[first:], given, strict=True)
  ]
  inner = graph.inner()
  inputs = [
    inner.value(f"input_{i}", x.aval)
    for i, x in enumerate(body.jaxpr.invars[first:])
  ]
  consts = operands[:first]
  found = translate(inner, body.jaxpr, body.consts, [*consts, *inputs])
  made = [
    inner.spread(x, of.aval.shape)
    for x, of in zip(found, body.jaxpr.outvars, strict=True)
  ]
  outputs = [
    inner.value(f"output_{i}", x.aval) for i, x in enumerate(body.jaxpr.outvars)
  ]
  pairs = zip(given, body.jaxpr.invars[first:], strict=True)
  names = graph.outputs(
    "Scan",
    whole,
    len(outputs),
    body=inner.body(inputs, made, outputs),
    num_scan_inputs=sum(x.aval.shape != y.aval.shape for x, y in pairs),
  )
  return [
    Value(name, of.aval.shape, of.aval.dtype)
    for name, of in zip(names, equation.outvars, strict=True)
  ]


def _compute(graph: Graph, equation, operands: list) -> list:
  """Returns the results of an equation of arrays, as arrays."""
  whole = [
    graph.spread(x, given.aval.shape)
    for x, given in zip(operands, equation.invars, strict=True)
  ]
  made = equation.primitive.bind(*whole, **equation.params)
  made = made if equation.primitive.multiple_results else [made]
  return list(map(np.asarray, made))
