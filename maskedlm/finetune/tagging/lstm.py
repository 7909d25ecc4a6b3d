"""BiLSTM: layers of LSTMs that read a row in both directions.

Heads on a frozen encoder use it (finetune/features/features.py). Dimensions: B
rows, L tokens, D input width, W width of a direction, G = 4 W gates, 2
directions.
"""

from flax import linen as nn

from maskedlm.modeling.layers import DTYPES, Dense, Dropout
from maskedlm.modeling.lstm import in_reading_order, read_both_ways


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
    gates = in_reading_order(gates)
    return read_both_ways(gates, segment_ids, kernel).reshape(B, L, 2 * W)
