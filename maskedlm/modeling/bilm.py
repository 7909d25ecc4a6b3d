"""Two language models of LSTMs, one from each end of a row: ELMo's encoder.

As in Peters et al. 2018 (arXiv:1802.05365, sections 3.1 and 3.3): the layers of
each direction read only that direction's, and from the second layer on a
residual connection adds a layer's input. A vector is the output of both,
[left to right; right to left], so a token's left and right side never meet
within it. Tokens are subwords, whose embeddings both directions share; the
paper has a convolution over a word's characters instead. Its code also clips
cells and outputs, which is left out.

The LSTMs have projected outputs (Sak et al. 2014, arXiv:1402.1128), so D =
2 W for outputs of width W, and cfg.mlp_width, C, is the number of cells of a
direction. Matrices start with a deviation of the inputs' number to the power of
-1/2, whatever cfg.init_stddev is, which is the embeddings'.
"""

import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from maskedlm.modeling.arrays import Array, Bool, Float, Int
from maskedlm.modeling.encoder import Embeddings, EncoderConfig, by_rows, stack
from maskedlm.modeling.layers import DTYPES, Dropout, contract
from maskedlm.modeling.lstm import in_reading_order, read_both_ways


class ProjectedLstm(nn.Module):
  """An LSTM in each direction, whose output is projected."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(
    self, x: Float[Array, "B L 2 W"], segment_ids: Int[Array, "B L"]
  ) -> Float[Array, "B L 2 W"]:
    """Returns the outputs of both directions."""
    cfg, W, C = self.cfg, x.shape[-1], self.cfg.mlp_width
    dtype = DTYPES[cfg.dtype]

    def kernel(name, inputs, outputs):
      init = nn.initializers.truncated_normal(inputs**-0.5)
      shape = (2, inputs, outputs)
      return self.param(f"{name}_kernel", init, shape).astype(dtype)

    pairs = zip(in_reading_order(x), kernel("input", W, 4 * C), strict=True)
    gates = [contract(*pair, 1) for pair in pairs]
    if cfg.biases:
      bias = self.param("bias", nn.initializers.zeros, (2, 4 * C))
      pairs = zip(gates, bias, strict=True)
      gates = [(g.astype(jnp.float32) + b).astype(dtype) for g, b in pairs]
    projection = kernel("projection", C, W)
    recurrent = kernel("recurrent", W, 4 * C)
    return read_both_ways(tuple(gates), segment_ids, recurrent, projection)


class BiLmLayer(nn.Module):
  """The LSTMs of a layer; their input is added, except to the first."""

  cfg: EncoderConfig
  train: bool

  @nn.compact
  def __call__(
    self,
    x: Float[Array, "n D"],
    is_first: Bool[Array, ""],
    segment_ids: Int[Array, "B L"],
  ) -> tuple[Float[Array, "n D"], None]:
    """Returns (the tokens' vectors, None), as scan requires."""
    cfg, (B, L) = self.cfg, segment_ids.shape
    lstm = ProjectedLstm(cfg, name="lstm")
    y = lstm(x.reshape(B, L, 2, cfg.width // 2), segment_ids)
    y = Dropout(cfg.dropout)(y.reshape(x.shape), train=self.train)
    x = by_rows(jnp.where(is_first, y, x + y))
    self.sow("intermediates", "layer", x)  # For encode_layers.
    return x, None


class BiLm(nn.Module):
  """Maps token ids to the vectors of both directions, side by side.

  Layer 0, which encode_layers returns, has the embeddings twice.
  """

  cfg: EncoderConfig

  @nn.compact
  def __call__(
    self,
    input_ids: Int[Array, "B L"],
    token_type_ids: Int[Array, "B L"],
    segment_ids: Int[Array, "B L"],
    positions: Int[Array, "B L"] | None = None,
    *,
    train: bool,
  ) -> Float[Array, "B L D"]:
    """Returns vectors of cfg.dtype; arguments are those of Encoder.

    Positions are unused: an LSTM counts. Where a segment begins, seen from
    either end, the state is zero.
    """
    del positions
    cfg, (B, L) = self.cfg, input_ids.shape
    x = Embeddings(cfg, name="embeddings")(
      input_ids.reshape(B * L), token_type_ids.reshape(B * L), None, train=train
    )
    x = jnp.concatenate([x, x], axis=1)
    self.sow("intermediates", "embedded", x)
    layers = stack(BiLmLayer, cfg, train, (0, nn.broadcast))
    is_first = np.arange(cfg.num_layers) == 0
    x, _ = layers(cfg, train, name="layers")(x, is_first, segment_ids)
    return x.reshape(B, L, cfg.width)
