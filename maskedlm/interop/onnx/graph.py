"""Builds an ONNX graph, operator by operator.

An operand is an array, which is known when the graph is built, or a Value,
which is known when it runs. Either may have a dimension of 1 where JAX's array
has n: most operators broadcast by themselves. For the others, `spread` it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from maskedlm.core.errors import InteropError

OPSET = 20  # The first with Gelu; onnxruntime reads it since 1.17.
IR_VERSION = 9  # That of OPSET: the newest is too new for most runtimes.
_SMALL = 64  # Arrays of fewer numbers are compared by their numbers.

Dim = Any  # An int, or a symbolic dimension of jax.export.


def unsupported(what: str) -> InteropError:
  """Returns the error for a part of a model that has no counterpart."""
  return InteropError(
    f"{what} can't be written as ONNX; export the model with --to=stablehlo."
  )


class Value(NamedTuple):
  """A result of an operator, or an input."""

  name: str
  shape: tuple[Dim, ...]
  dtype: np.dtype


class Graph(NamedTuple):
  """The operators and arrays added so far; equal ones are added once."""

  nodes: dict[str, onnx.NodeProto]  # By the first result's name, in order.
  arrays: dict[str, np.ndarray]
  names: dict[tuple, Any]  # Key of an operator or array -> its name, or names.
  symbols: dict[str, str]  # A symbolic dimension -> its size, a tensor [1].
  prefix: str = ""  # Of the names of operators.

  def inner(self) -> "Graph":
    """Returns a graph for the body of a loop, which sees all of this one."""
    prefix = f"loop_{len(self.nodes)}/"
    return self._replace(nodes={}, names=dict(self.names), prefix=prefix)

  def value(self, name: str, aval) -> Value:
    """Returns a value of a name of its own, with the shape and type of aval."""
    return Value(self.prefix + name, aval.shape, aval.dtype)

  def body(self, inputs: Sequence, results: Sequence, outputs: Sequence):
    """Returns the body of a loop, in which results get the names of outputs."""
    last = [
      helper.make_node("Identity", [self.name(x)], [y.name])
      for x, y in zip(results, outputs, strict=True)
    ]

    def info(x: Value):
      return _info(x.name, helper.np_dtype_to_tensor_dtype(x.dtype), None)

    nodes = [*self.nodes.values(), *last]
    return helper.make_graph(
      nodes, "body", [*map(info, inputs)], [*map(info, outputs)]
    )

  def outputs(self, op: str, inputs: Sequence, n: int, **attributes):
    """Adds an operator, with attributes; returns the names of its n results."""
    input_names = [self.name(x) for x in inputs]
    key = (op, *input_names, *sorted(map(str, attributes.items())), n)
    if key not in self.names:
      name = f"{self.prefix}{op}_{len(self.nodes)}"
      output_names = [name, *(f"{name}_{i}" for i in range(1, n))]
      node = helper.make_node(
        op, input_names, output_names, name=name, **attributes
      )
      self.nodes[name] = node
      self.names[key] = output_names
    return self.names[key]

  def output(self, op: str, inputs: Sequence, shape, dtype, **attributes):
    """Adds an operator with one result; returns it as a Value."""
    (name,) = self.outputs(op, inputs, 1, **attributes)
    return Value(name, tuple(shape), np.dtype(dtype))

  def name(self, x) -> str:
    """Returns the name of an operand; an array is added."""
    if isinstance(x, (str, Value)):
      return x if isinstance(x, str) else x.name
    if x.size < _SMALL:
      content = x.tobytes()
    else:  # self.arrays keeps it, so no other array can have this address.
      content = (x.__array_interface__["data"], x.strides)
    key = (str(x.dtype), x.shape, content)
    if key not in self.names:
      self.names[key] = f"array_{len(self.arrays)}"
      self.arrays[self.names[key]] = x
    return self.names[key]

  def input(self, name: str, shape: Sequence[Dim], dtype) -> Value:
    """Returns an input; the sizes of its symbolic dimensions become known."""
    for axis, dim in enumerate(shape):
      if not isinstance(dim, int) and str(dim) not in self.symbols:
        size = self.outputs("Shape", [name], 1, start=axis, end=axis + 1)
        (self.symbols[str(dim)],) = size
    return Value(name, tuple(shape), np.dtype(dtype))

  def sizes(self, shape: Sequence[Dim]):
    """Returns the operand of a shape, [rank] int64."""
    if all(isinstance(dim, int) for dim in shape):
      return np.array(shape, np.int64)
    parts = [self._size(dim) for dim in shape]
    return self.outputs("Concat", parts, 1, axis=0)[0]

  def _size(self, dim: Dim):
    """Returns the operand of a dimension, [1] int64."""
    if isinstance(dim, int):
      return np.array([dim], np.int64)
    product, _, less = str(dim).partition(" - ")  # b*l, l - 1, 2*l - 1
    names = product.split("*")
    if not {x for x in names if not x.isdigit()} <= self.symbols.keys():
      raise unsupported(f"a dimension of {dim}")
    size, *factors = (
      np.array([x], np.int64) if x.isdigit() else self.symbols[x] for x in names
    )
    for factor in factors:
      (size,) = self.outputs("Mul", [size, factor], 1)
    if less:
      (size,) = self.outputs("Sub", [size, np.array([less], np.int64)], 1)
    return size

  def cast(self, x, dtype):
    """Returns an operand of the given type."""
    if x.dtype == dtype:
      return x
    to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return self.output("Cast", [x], x.shape, dtype, to=to)

  def spread(self, x, shape: Sequence[Dim]):
    """Returns an operand with exactly this shape."""
    shape = tuple(shape)
    if x.shape == shape:
      return x
    if isinstance(x, np.ndarray) and all(isinstance(d, int) for d in shape):
      return np.broadcast_to(x, shape)
    return self.output("Expand", [x, self.sizes(shape)], shape, x.dtype)

  def finish(
    self,
    inputs: Mapping[str, Sequence[str]],
    outputs: Mapping[str, tuple[Any, Sequence[int | str]]],
  ) -> onnx.ModelProto:
    """Returns the model, without what no output needs.

    Args:
      inputs: name -> names of the dimensions; int64.
      outputs: name -> (operand, dimensions or their names); float32.
    """
    last = [
      helper.make_node("Identity", [self.name(x)], [name])
      for name, (x, _) in outputs.items()
    ]
    nodes, needed = [], set(outputs)
    for node in reversed([*self.nodes.values(), *last]):
      if needed.intersection(node.output):
        nodes.append(node)
        needed.update(node.input)
        for body in (x.g.node for x in node.attribute):
          needed.update(name for inside in body for name in inside.input)
    arrays = [
      numpy_helper.from_array(np.ascontiguousarray(x), name)
      for name, x in self.arrays.items()
      if name in needed
    ]
    graph = helper.make_graph(
      nodes[::-1],
      "maskedlm",
      [_info(name, TensorProto.INT64, inputs[name]) for name in inputs],
      [_info(name, TensorProto.FLOAT, outputs[name][1]) for name in outputs],
      arrays,
    )
    return helper.make_model(
      graph,
      producer_name="maskedlm",
      ir_version=IR_VERSION,
      opset_imports=[helper.make_opsetid("", OPSET)],
    )


_info = helper.make_tensor_value_info
