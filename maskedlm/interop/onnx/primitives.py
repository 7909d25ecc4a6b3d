"""The operations of JAX that encoders and heads use, as operators of ONNX.

PRIMITIVES has a function for each primitive, (graph, equation, *operands) ->
the operand of the result, or a list of them. functions.py translates several
at once.
"""

import functools
import math

import numpy as np

from maskedlm.interop.onnx import functions
from maskedlm.interop.onnx.graph import Graph, Value, unsupported

_END = np.iinfo(np.int64).max  # Of a dimension, whatever its size.


def _ints(*numbers) -> np.ndarray:
  return np.array(numbers, np.int64)


def _shape(equation) -> tuple:
  return equation.outvars[0].aval.shape


def _dtype(equation) -> np.dtype:
  return equation.outvars[0].aval.dtype


def _spread(graph: Graph, equation, x, i: int = 0):
  """Returns the i-th operand in its whole shape."""
  return graph.spread(x, equation.invars[i].aval.shape)


# --- Elementwise ---


def _is_one(dim) -> bool:
  return isinstance(dim, int) and dim == 1


def _common_shape(operands) -> tuple:
  rank = max(len(x.shape) for x in operands)
  shapes = [(1,) * (rank - len(x.shape)) + tuple(x.shape) for x in operands]
  return tuple(
    next((dim for dim in dims if not _is_one(dim)), 1)
    for dims in zip(*shapes, strict=True)
  )


def _elementwise(op: str, graph: Graph, equation, *operands) -> Value:
  return graph.output(op, operands, _common_shape(operands), _dtype(equation))


def _add(graph: Graph, equation, x, y) -> Value:
  return functions.add(graph, x, y, _common_shape((x, y)), _dtype(equation))


def _chain(*ops: str):
  """Returns the translation that applies operators of one operand."""

  def translation(graph: Graph, equation, x):
    for op in ops:
      x = graph.output(op, [x], x.shape, _dtype(equation))
    return x

  return translation


def _identity(graph: Graph, equation, x):
  return x


def _power(graph: Graph, equation, x):
  exponent = np.asarray(equation.params.get("y", 2), x.dtype)
  return graph.output("Pow", [x, exponent], x.shape, x.dtype)


def _select(graph: Graph, equation, predicate, *cases):
  if isinstance(predicate, np.ndarray) and predicate.size == 1:
    return cases[int(predicate.item())]
  if len(cases) != 2:
    raise unsupported("a choice between more than two")
  return _elementwise("Where", graph, equation, predicate, cases[1], cases[0])


def _cast(graph: Graph, equation, x):
  return graph.cast(x, _dtype(equation))


# --- Shapes ---


def _broadcast_in_dim(graph: Graph, equation, x):
  """Adds dimensions of 1: see graph.py."""
  shape, kept_axes = _shape(equation), equation.params["broadcast_dimensions"]
  added = [axis for axis in range(len(shape)) if axis not in kept_axes]
  return _unsqueeze(graph, x, added)


def _unsqueeze(graph: Graph, x, added):
  """Returns x with dimensions of 1 at the axes `added`."""
  if isinstance(x, np.ndarray):
    return np.expand_dims(x, tuple(added))
  if not added:
    return x
  shape = list(x.shape)
  for axis in added:
    shape.insert(axis, 1)
  return graph.output("Unsqueeze", [x, _ints(*added)], shape, x.dtype)


def _reshape(graph: Graph, x, shape):
  shape = tuple(shape)
  if x.shape == shape:
    return x
  if sum(not isinstance(dim, int) for dim in shape) == 1:  # What is left.
    sizes = _ints(*(dim if isinstance(dim, int) else -1 for dim in shape))
  else:
    sizes = graph.sizes(shape)
  return graph.output("Reshape", [x, sizes], shape, x.dtype)


def _squeeze(graph: Graph, x, axes):
  """Returns x without the axes, whose dimensions are 1."""
  if not axes:
    return x
  shape = [dim for axis, dim in enumerate(x.shape) if axis not in axes]
  return graph.output("Squeeze", [x, _ints(*axes)], shape, x.dtype)


def _transpose(graph: Graph, x, order):
  order = list(order)
  if order == sorted(order):
    return x
  shape = [x.shape[axis] for axis in order]
  return graph.output("Transpose", [x], shape, x.dtype, perm=order)


def _concatenate(graph: Graph, equation, *operands):
  parts = [_spread(graph, equation, x, i) for i, x in enumerate(operands)]
  shape, dtype = _shape(equation), _dtype(equation)
  axis = equation.params["dimension"]
  return graph.output("Concat", parts, shape, dtype, axis=axis)


def _pad(graph: Graph, equation, x, value):
  low, high, between = zip(*equation.params["padding_config"], strict=True)
  if any(between):
    raise unsupported("padding between numbers")
  inputs = [_spread(graph, equation, x), _ints(*low, *high), value]
  return graph.output("Pad", inputs, _shape(equation), x.dtype)


def _split(graph: Graph, equation, x):
  sizes, axis = equation.params["sizes"], equation.params["axis"]
  inputs = [_spread(graph, equation, x), _ints(*sizes)]
  names = graph.outputs("Split", inputs, len(sizes), axis=axis)
  return [
    Value(name, part.aval.shape, x.dtype)
    for name, part in zip(names, equation.outvars, strict=True)
  ]


def _slice(graph: Graph, equation, x):
  params, x = equation.params, _spread(graph, equation, x)
  starts, ends = params["start_indices"], params["limit_indices"]
  strides = params["strides"] or (1,) * len(starts)
  return _take_slice(graph, x, starts, ends, strides, _shape(equation))


def _take_slice(graph: Graph, x, starts, ends, strides, shape):
  axes = [
    axis
    for axis, dim in enumerate(x.shape)
    if (starts[axis], ends[axis], strides[axis]) != (0, dim, 1)
  ]
  if not axes:
    return x
  first, last, steps = (
    graph.sizes([n[axis] for axis in axes]) for n in (starts, ends, strides)
  )
  inputs = [x, first, last, _ints(*axes), steps]
  return graph.output("Slice", inputs, shape, x.dtype)


def _reverse(graph: Graph, equation, x):
  axes, x = equation.params["dimensions"], _spread(graph, equation, x)
  back = _ints(*[-1] * len(axes))  # The start, and the step.
  inputs = [x, back, back * _END, _ints(*axes), back]
  return graph.output("Slice", inputs, x.shape, x.dtype)


def _iota(graph: Graph, equation):
  shape, axis = _shape(equation), equation.params["dimension"]
  limit = _size(graph, shape[axis])
  zero, one = np.array(0, np.int64), np.array(1, np.int64)
  x = graph.output(
    "Range", [zero, limit, one], shape[axis : axis + 1], np.int64
  )
  others = [i for i in range(len(shape)) if i != axis]
  return _unsqueeze(graph, _cast(graph, equation, x), others)


def _size(graph: Graph, dim):
  """Returns the operand of a dimension, a scalar of int64."""
  sizes = Value(graph.name(graph.sizes((dim,))), (1,), np.dtype(np.int64))
  return _squeeze(graph, sizes, (0,))


def _gather(graph: Graph, equation, x, indices):
  """Translates slices, rows of a table, and jnp.take_along_axis."""
  params, x = equation.params, _spread(graph, equation, x)
  numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
  axes, dropped = numbers.start_index_map, numbers.collapsed_slice_dims
  batch, shape = numbers.operand_batching_dims, _shape(equation)
  if isinstance(indices, np.ndarray) and indices.ndim == 1:
    of_axis = dict(zip(axes, map(int, indices), strict=True))
    starts = [of_axis.get(axis, 0) for axis in range(len(sizes))]
    ends = [a + n if a else n for a, n in zip(starts, sizes, strict=True)]
    part = _take_slice(graph, x, starts, ends, [1] * len(sizes), sizes)
    return _squeeze(graph, part, dropped)
  indices = _spread(graph, equation, indices, 1)
  last = len(indices.shape) - 1
  is_lookup = axes == dropped == (len(batch),)
  if not is_lookup or numbers.offset_dims != tuple(range(last, len(shape))):
    raise unsupported("an array that is indexed in this way")
  if not batch:
    rows = _squeeze(graph, indices, (last,))
    return graph.output("Gather", [x, rows], shape, x.dtype, axis=0)
  rows = graph.cast(indices, np.int64)
  return graph.output("GatherND", [x, rows], shape, x.dtype, batch_dims=1)


# --- Sums and products ---


def _reduce(op: str, graph: Graph, equation, x):
  inputs = [_spread(graph, equation, x), _ints(*equation.params["axes"])]
  return graph.output(op, inputs, _shape(equation), x.dtype, keepdims=0)


def _dot(graph: Graph, equation, x, y):
  contracted, batch = equation.params["dimension_numbers"]
  x, y = _spread(graph, equation, x), _spread(graph, equation, y, 1)
  if isinstance(y, np.ndarray) and not any(batch):
    return _times_weights(graph, equation, x, y, contracted)
  free_x, free_y = (
    [axis for axis in range(len(a.shape)) if axis not in (*used, *rows)]
    for a, used, rows in zip((x, y), contracted, batch, strict=True)
  )
  if not free_x or not len(free_y) == len(contracted[0]) == 1:
    raise unsupported("a product of more than one dimension")
  *first, last = free_x  # MatMul repeats y for the first.
  x = _transpose(graph, x, (*first, *batch[0], last, *contracted[0]))
  y = _transpose(graph, y, (*batch[1], *contracted[1], *free_y))
  n, m = len(first), len(first) + len(batch[0])
  order = (*range(n, m), *range(n), m, m + 1)  # Of the result, batch first.
  shape = [0] * len(order)
  for axis, dim in zip(order, _shape(equation), strict=True):
    shape[axis] = dim
  product = graph.output("MatMul", [x, y], shape, _dtype(equation))
  return _transpose(graph, product, order)


def _times_weights(graph: Graph, equation, x, y: np.ndarray, contracted):
  """Returns x times weights, as a matrix [inputs, outputs]."""
  of_x, of_y = contracted
  shape, dtype = _shape(equation), _dtype(equation)
  if y.ndim == len(x.shape) == 2 and of_x == of_y == (1,):
    # The token embedding as output layer, which is not to be stored twice.
    return graph.output("Gemm", [x, y], shape, dtype, transB=1)
  inputs = math.prod(y.shape[axis] for axis in of_y)
  free = [axis for axis in range(len(x.shape)) if axis not in of_x]
  rows = [x.shape[axis] for axis in free]
  x = _reshape(graph, _transpose(graph, x, (*free, *of_x)), (*rows, inputs))
  matrix = np.moveaxis(y, of_y, range(len(of_y))).reshape(inputs, -1)
  product = graph.output("MatMul", [x, matrix], (*rows, matrix.shape[1]), dtype)
  return _reshape(graph, product, shape)


_PAIRS = {
  "and": "And",
  "div": "Div",
  "eq": "Equal",
  "ge": "GreaterOrEqual",
  "gt": "Greater",
  "le": "LessOrEqual",
  "lt": "Less",
  "max": "Max",
  "min": "Min",
  "mul": "Mul",
  "or": "Or",
  "sub": "Sub",
}
_SINGLES = {
  "abs": ("Abs",),
  "cos": ("Cos",),
  "erf": ("Erf",),
  "exp": ("Exp",),
  "logistic": ("Sigmoid",),
  "neg": ("Neg",),
  "not": ("Not",),
  "rsqrt": ("Sqrt", "Reciprocal"),
  "sin": ("Sin",),
  "sqrt": ("Sqrt",),
  "tanh": ("Tanh",),
}
_SAME = ("copy", "name", "optimization_barrier", "stop_gradient")
PRIMITIVES = {
  **{a: functools.partial(_elementwise, op) for a, op in _PAIRS.items()},
  **{a: _chain(*ops) for a, ops in _SINGLES.items()},
  **dict.fromkeys(_SAME, _identity),
  "add": _add,
  "broadcast_in_dim": _broadcast_in_dim,
  "concatenate": _concatenate,
  "convert_element_type": _cast,
  "dim_as_value": lambda g, e: _cast(g, e, _size(g, e.params["dim"])),
  "dot_general": _dot,
  "gather": _gather,
  "integer_pow": _power,
  "iota": _iota,
  "pad": _pad,
  "reduce_max": functools.partial(_reduce, "ReduceMax"),
  "reduce_sum": functools.partial(_reduce, "ReduceSum"),
  "reshape": lambda g, e, x: _reshape(g, _spread(g, e, x), _shape(e)),
  "rev": _reverse,
  "select_n": _select,
  "slice": _slice,
  "split": _split,
  "square": _power,
  "squeeze": lambda g, e, x: _squeeze(g, x, e.params["dimensions"]),
  "transpose": lambda g, e, x: _transpose(g, x, e.params["permutation"]),
}
