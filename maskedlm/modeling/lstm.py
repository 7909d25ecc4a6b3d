"""LSTMs that read rows from both ends, in a single scan over time.

The LSTM is that of Hochreiter & Schmidhuber (1997) with forget gates (Gers et
al. 2000), whose bias starts at 1 (Jozefowicz et al. 2015) so that it remembers
at first. Dimensions: B rows, L tokens, 2 directions, C cells, G = 4 C gates, W
width of what the next step reads.
"""

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.modeling.arrays import Array, Float, Int
from maskedlm.modeling.layers import DTYPES, Dense, Dropout


class BiLstm(nn.Module):
  """Stacked layers, each of which reads both directions of the one below."""

  width: int  # W.
  num_layers: int
  dropout: float  # Applied to each layer's input.
  dtype: str

  @nn.compact
  def __call__(
    self,
    x: Float[Array, "B L D"],
    segment_ids: Int[Array, "B L"],
    *,
    train: bool,
  ) -> Float[Array, "B L {2*self.width}"]:
    """Returns [B, L, 2 W] of dtype.

    Each segment of a row is read separately: from either end, the state is zero
    where it begins. Segment 0 is padding; its output is 0.
    """
    for n in range(self.num_layers):
      x = Dropout(self.dropout)(x, train=train)
      layer = BiLstmLayer(self.width, self.dtype, name=f"bilstm_{n}")
      x = layer(x, segment_ids)
    return x


class BiLstmLayer(nn.Module):
  """An LSTM in each direction, both in a single scan over time."""

  width: int
  dtype: str

  @nn.compact
  def __call__(self, x, segment_ids):
    """Maps x [B, L, D] and segment_ids [B, L] to [B, L, 2 W]."""
    B, L, D = x.shape
    W = self.width
    G = 4 * W
    # Applied to all inputs at once; gates: input, forget, cell, output.
    dense = Dense((D,), (2, G), D**-0.5, self.dtype, name="input_dense")
    init = nn.initializers.truncated_normal(W**-0.5)
    kernel = self.param("recurrent_kernel", init, (2, W, G))
    kernel = kernel.astype(DTYPES[self.dtype])
    gates = dense(x.reshape(B * L, D)).reshape(B, L, 2, G)
    gates = in_reading_order(gates)
    return read_both_ways(gates, segment_ids, kernel).reshape(B, L, 2 * W)


def in_reading_order(x: Array) -> tuple[Array, Array]:
  """Returns the parts [L, B, W] of x [B, L, 2, W]; the second ends first."""
  x = jnp.transpose(x, (2, 1, 0, 3))
  return x[0], jnp.flip(x[1], axis=0)


def read_both_ways(
  gates: tuple[Float[Array, "L B G"], Float[Array, "L B G"]],
  segment_ids: Int[Array, "B L"],
  kernel: Float[Array, "2 W G"],
  projection: Float[Array, "2 C W"] | None = None,
) -> Float[Array, "B L 2 W"]:
  """Returns the outputs of an LSTM from each end of a row.

  Each segment of a row is read separately: from either end, the state is zero
  where it begins. Segment 0 is padding; its output is 0.

  Args:
    gates: in_reading_order, what the inputs add to the input, forget, cell and
      output gates, C each.
    segment_ids: which segment each token belongs to.
    kernel: of the outputs of the step before; it has the type of the
      computation.
    projection: of the hidden states (Sak et al. 2014); None: they are the
      outputs, and W = C.
  """
  ids = segment_ids[..., None, None]
  twice = in_reading_order(jnp.concatenate([ids, ids], axis=2))
  continues = tuple(_shift(x[1:] == x[:-1]) for x in twice)
  projections = (None, None) if projection is None else tuple(projection)
  y = _read(gates, continues, tuple(kernel), projections)
  y = (y[0][:, :, None], jnp.flip(y[1], axis=0)[:, :, None])
  y = jnp.concatenate(y, axis=2)  # [L, B, 2, W].
  return jnp.where(ids > 0, jnp.swapaxes(y, 0, 1), 0)


@jax.custom_vjp
def _read(gates, continues, kernel, projection):
  """Returns two arrays of outputs [L, B, W].

  The gradients of the kernels are products over all steps at once. Those of
  the scan would be sums in memory, read and written at each step.
  """
  return _read_forward(gates, continues, kernel, projection)[0]


def _read_forward(gates, continues, kernel, projection):
  (L, B, _), W = gates[0].shape, kernel[0].shape[0]
  no_change = (jnp.zeros((L, B, W), kernel[0].dtype),) * 2
  (y, hidden), pull_back = jax.vjp(
    lambda gates, change: _scan(gates, change, continues, kernel, projection),
    gates,
    no_change,
  )
  return y, (y, hidden, continues, projection, pull_back)


def _read_backward(saved, dy):
  y, hidden, continues, projection, pull_back = saved
  dgates, dy = pull_back((dy, jax.tree.map(jnp.zeros_like, hidden)))
  pairs = zip(continues, y, strict=True)
  before = [jnp.where(c, _shift(x[:-1]), 0) for c, x in pairs]
  dkernel = tuple(map(_sum_of_products, before, dgates))
  dprojection = projection
  if projection[0] is not None:
    dprojection = tuple(map(_sum_of_products, hidden, dy))
  return dgates, None, dkernel, dprojection


_read.defvjp(_read_forward, _read_backward)


def _scan(gates, change, continues, kernel, projection):
  """Returns outputs [L, B, W], `change` added, and hidden [L, B, C], of both.

  Both are read in one scan: a step from either end at a time.
  """

  def step(state, inputs):
    read = (
      _step(*direction)
      for direction in zip(*state, *inputs, kernel, projection, strict=True)
    )
    outputs, cells, hidden = zip(*read, strict=True)
    return (outputs, cells), (outputs, hidden)

  (_, B, G), W = gates[0].shape, kernel[0].shape[0]
  start = (
    (jnp.zeros((B, W), kernel[0].dtype),) * 2,
    (jnp.zeros((B, G // 4), jnp.float32),) * 2,
  )
  return jax.lax.scan(step, start, (gates, change, continues))[1]


def _step(output, cell, gates, change, continues, kernel, projection):
  """Returns the output [B, W], cell and hidden state [B, C] of a step."""
  output, cell = (jnp.where(continues, x, 0) for x in (output, cell))
  gates = (gates + output @ kernel).astype(jnp.float32)
  input_gate, forget_gate, new_cell, output_gate = jnp.split(gates, 4, axis=-1)
  cell = jax.nn.sigmoid(forget_gate + 1.0) * cell
  cell = cell + jax.nn.sigmoid(input_gate) * jnp.tanh(new_cell)
  hidden = (jax.nn.sigmoid(output_gate) * jnp.tanh(cell)).astype(kernel.dtype)
  output = hidden if projection is None else hidden @ projection
  return output + change, cell, hidden


def _shift(x):
  """Returns x [L - 1, B, W] with zeros before it: [L, B, W]."""
  return jnp.pad(x, [(1, 0), (0, 0), (0, 0)])


def _sum_of_products(x, y):
  """Returns the sum over L and B of x [L, B, N] times y [L, B, M]: [N, M]."""
  return x.reshape(-1, x.shape[2]).T @ y.reshape(-1, y.shape[2])
