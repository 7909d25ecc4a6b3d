"""LSTMs that read rows from both ends, in a single scan over time.

The LSTM is that of Hochreiter & Schmidhuber (1997) with forget gates (Gers et
al. 2000), whose bias starts at 1 (Jozefowicz et al. 2015) so that it remembers
at first. Dimensions: B rows, L tokens, 2 directions, C cells, G = 4 C gates, W
width of what the next step reads.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp


def read_both_ways(
  gates,
  segment_ids,
  kernel,
  project: Callable = lambda hidden: hidden,
):
  """Returns the outputs [B, L, 2, W] of an LSTM from each end of a row.

  Each segment of a row is read separately: from either end, the state is zero
  where it begins. Segment 0 is padding; its output is 0.

  Args:
    gates: [B, L, 2, G], what the inputs add to the input, forget, cell and
      output gates, C each.
    segment_ids: [B, L].
    kernel: [2, W, G], of the outputs of the step before; it has the type of
      the computation.
    project: [2, B, C] -> [2, B, W], the output of a step from its hidden state.
  """
  (B, L, _, G), W = gates.shape, kernel.shape[1]
  gates = _reverse_second(jnp.transpose(gates, (1, 2, 0, 3)))  # [L, 2, B, G].
  ids = jnp.broadcast_to(segment_ids.T[:, None, :, None], (L, 2, B, 1))
  ids = _reverse_second(ids)
  continues = jnp.pad(ids[1:] == ids[:-1], [(1, 0), (0, 0), (0, 0), (0, 0)])

  def step(state, inputs):
    gates, continues = inputs
    # [2, B, W] and [2, B, C]; the cell is float32.
    output, cell = (jnp.where(continues, x, 0) for x in state)
    gates = gates + jnp.einsum("dBW,dWG->dBG", output, kernel)
    gates = jnp.split(gates.astype(jnp.float32), 4, axis=-1)
    input_gate, forget_gate, new_cell, output_gate = gates
    cell = jax.nn.sigmoid(forget_gate + 1.0) * cell
    cell = cell + jax.nn.sigmoid(input_gate) * jnp.tanh(new_cell)
    hidden = jax.nn.sigmoid(output_gate) * jnp.tanh(cell)
    output = project(hidden.astype(output.dtype))
    return (output, cell), output

  start = (
    jnp.zeros((2, B, W), kernel.dtype),
    jnp.zeros((2, B, G // 4), jnp.float32),
  )
  _, y = jax.lax.scan(step, start, (gates, continues))
  y = jnp.transpose(_reverse_second(y), (2, 0, 1, 3))
  return jnp.where(segment_ids[..., None, None] > 0, y, 0)


def _reverse_second(x):
  """Returns x [L, 2, ...] with the second direction reversed in time."""
  return jnp.stack([x[:, 0], x[::-1, 1]], axis=1)
