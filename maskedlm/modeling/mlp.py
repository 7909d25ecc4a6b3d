"""The MLPs of a block, and one of the user's own."""

from typing import Any

from flax import linen as nn

from maskedlm.core import own_file
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.arrays import Array, Float
from maskedlm.modeling.layers import ACTIVATIONS, Dense, Dropout, on_cpu, parts


class Mlp(nn.Module):
  """Dense to mlp_width, activation, dense back to D; then dropout."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(
    self, x: Float[Array, "n D"], *, train: bool
  ) -> Float[Array, "n D"]:
    """Returns what is added to the tokens of all rows."""
    cfg = self.cfg
    D, F = cfg.width, cfg.mlp_width
    dense: dict[str, Any] = {"dtype": cfg.dtype, "use_bias": cfg.biases}
    x = Dense((D,), (F,), cfg.init_stddev, **dense, name="up")(x)
    x = ACTIVATIONS[cfg.activation](x)
    x = Dense((F,), (D,), cfg.output_stddev, **dense, name="down")(x)
    return Dropout(cfg.dropout)(x, train=train)


class GatedMlp(nn.Module):
  """Two dense layers to mlp_width, one gating the other; dense back to D.

  With gelu it is GeGLU, with silu SwiGLU (arXiv:2002.05202). The first two
  layers have no biases, and dropout precedes the last, as in MosaicBERT and
  ModernBERT.
  """

  cfg: EncoderConfig

  @nn.compact
  def __call__(
    self, x: Float[Array, "n D"], *, train: bool
  ) -> Float[Array, "n D"]:
    """Returns what is added to the tokens of all rows."""
    cfg = self.cfg
    D, F = cfg.width, cfg.mlp_width
    dtype = cfg.dtype
    up = Dense((D,), (2, F), cfg.init_stddev, dtype, False, name="gate_up")(x)

    def between(self, gate, up):
      x = ACTIVATIONS[cfg.activation](gate) * up
      return Dropout(cfg.dropout)(x, train=train)

    # The backward pass computes this again, in one loop. Without prevent_cse,
    # XLA:CPU would keep what it needs of the forward pass: three more arrays.
    x = nn.remat(between, prevent_cse=on_cpu())(self, *parts(up, axis=1))
    down = Dense((F,), (D,), cfg.output_stddev, dtype, cfg.biases, name="down")
    return down(x)


MLPS = {"plain": Mlp, "gated": GatedMlp}


def make_mlp(cfg: EncoderConfig, name: str):
  """Returns the architecture's MLP, or that of a file, as a module."""
  module = own_file.load("model.mlp", cfg.mlp, list(MLPS), has=["Mlp"])
  return (module.Mlp if module else MLPS[cfg.mlp])(cfg, name=name)
