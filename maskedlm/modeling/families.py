"""Makes the encoder of an architecture, whatever its family."""

from flax import linen as nn

from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.bilm import BiLm
from maskedlm.modeling.encoder import Encoder

FAMILIES = {"transformer": Encoder, "bilm": BiLm}


def make_encoder(cfg: EncoderConfig) -> nn.Module:
  """Returns the module; its arguments and results are those of Encoder."""
  return FAMILIES[cfg.family](cfg)
