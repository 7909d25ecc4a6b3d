"""BiLSTM: layers of LSTMs that read a row in both directions.

Heads on a frozen encoder use it (finetune/features/features.py). The LSTM is
that of Hochreiter & Schmidhuber (1997) with forget gates (Gers et al. 2000),
whose bias starts at 1 (Jozefowicz et al. 2015) so that it remembers at first.
Dimensions: B rows, L tokens, D input width, W width of a direction, G = 4 W
gates, 2 directions.
"""

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.modeling.layers import DTYPES, Dense, Dropout


class BiLstm(nn.Module):
  """Stacked layers, each of which reads both directions of the one below."""

  width: int  # W.
  num_layers: int
  dropout: float  # Applied to each layer's input.
  dtype: str

  @nn.compact
  def __call__(self, x, segment_ids, *, train: bool):
    """Maps x [B, L, D] and segment_ids [B, L] to [B, L, 2 W] of dtype.

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
    gates = _reverse_second(jnp.transpose(gates, (1, 2, 0, 3)))  # [L, 2, B, G].
    ids = jnp.broadcast_to(segment_ids.T[:, None, :, None], (L, 2, B, 1))
    ids = _reverse_second(ids)
    continues = jnp.pad(ids[1:] == ids[:-1], [(1, 0), (0, 0), (0, 0), (0, 0)])

    def step(state, inputs):
      gates, continues = inputs
      # [2, B, W]; the cell is float32.
      hidden, cell = (jnp.where(continues, x, 0) for x in state)
      gates = gates + jnp.einsum("dBW,dWG->dBG", hidden, kernel)
      gates = jnp.split(gates.astype(jnp.float32), 4, axis=-1)
      input_gate, forget_gate, new_cell, output_gate = gates
      cell = jax.nn.sigmoid(forget_gate + 1.0) * cell
      cell = cell + jax.nn.sigmoid(input_gate) * jnp.tanh(new_cell)
      new_hidden = jax.nn.sigmoid(output_gate) * jnp.tanh(cell)
      hidden = new_hidden.astype(hidden.dtype)
      return (hidden, cell), hidden

    start = jnp.zeros((2, B, W), gates.dtype), jnp.zeros((2, B, W), jnp.float32)
    _, y = jax.lax.scan(step, start, (gates, continues))
    y = jnp.transpose(_reverse_second(y), (2, 0, 1, 3))  # [B, L, 2, W].
    return jnp.where(segment_ids[..., None] > 0, y.reshape(B, L, 2 * W), 0)


def _reverse_second(x):
  """Returns x [L, 2, ...] with the second direction reversed in time."""
  return jnp.stack([x[:, 0], x[::-1, 1]], axis=1)
