"""Translates functions for which ONNX has an operator, which is faster.

Other functions are translated part by part (primitives.py).
"""

import math

import numpy as np
from jax.extend.core import Literal

from maskedlm.interop.onnx.graph import Graph, Value


def add(graph: Graph, x, y, shape, dtype) -> Value:
  """Returns the sum of operands of the given shape.

  A bias becomes part of a norm, or is added to the product of a dense layer
  itself: runtimes fuse that, but not what follows a change of the shape.
  """
  node = graph.nodes.get(x.name) if isinstance(x, Value) else None
  is_bias = isinstance(y, np.ndarray) and y.shape == (1, *shape[1:])
  if node and is_bias and len(node.input) == 2:
    first, second = node.input
    bias = y.reshape(-1)
    if node.op_type == "LayerNormalization":
      epsilon = {a.name: a.f for a in node.attribute}["epsilon"]
      inputs = [first, second, bias]
      return graph.output(node.op_type, inputs, shape, dtype, epsilon=epsilon)
    if node.op_type == "Reshape" and first.startswith("MatMul"):
      flat = (shape[0], math.prod(shape[1:]))
      flat_sum = graph.output("Add", [first, bias], flat, dtype)
      return graph.output("Reshape", [flat_sum, second], shape, dtype)
  return graph.output("Add", [x, y], shape, dtype)


def _layer_norm(graph: Graph, jaxpr, x, scale):
  """Translates layers._normalise, unless it is RMSNorm's."""
  sums = [e for e in jaxpr.eqns if e.primitive.name == "reduce_sum"]
  if len(sums) != 2:  # Of the mean and of the variance.
    return None
  epsilon = next(
    float(operand.val)
    for e in jaxpr.eqns
    for operand in e.invars
    if e.primitive.name == "add" and isinstance(operand, Literal)
  )
  return _add_op(graph, "LayerNormalization", jaxpr, x, scale, epsilon=epsilon)


def _softmax_sum(graph: Graph, jaxpr, scores, values):
  """Translates attention.softmax_sum, of float32 as the whole program."""
  wide, result = jaxpr.invars[0].aval, jaxpr.outvars[0].aval
  scores = graph.spread(scores, wide.shape)
  weights = graph.output("Softmax", [scores], wide.shape, wide.dtype, axis=3)
  return graph.output("MatMul", [weights, values], result.shape, result.dtype)


def _gelu(approximate: str):
  def translation(graph: Graph, jaxpr, x):
    return _add_op(graph, "Gelu", jaxpr, x, approximate=approximate)

  return translation


def _add_op(graph: Graph, op: str, jaxpr, x, *others, **attributes):
  aval = jaxpr.outvars[0].aval
  x = graph.spread(x, aval.shape)
  return graph.output(op, [x, *others], aval.shape, aval.dtype, **attributes)


# Name of a function of maskedlm/modeling -> its translation,
# (graph, jaxpr, *operands) -> operand; None to translate it part by part.
FUNCTIONS = {
  "_normalise": _layer_norm,
  "gelu": _gelu("none"),
  "gelu_tanh": _gelu("tanh"),
  "softmax_sum": _softmax_sum,
}
