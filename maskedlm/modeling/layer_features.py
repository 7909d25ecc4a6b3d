"""Features of a frozen encoder: which of its layers, and how combined.

The choices of the BERT paper (Devlin et al. 2019, arXiv:1810.04805, table 7),
the chapter's mean, and ELMo's learnt weighted sum (Peters et al. 2018,
arXiv:1802.05365, equation 1).
"""

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Batch, Params
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig

# Functions from all layers' vectors [N + 1, R, S, D], the embeddings first, to
# features [R, S, F]. The "last four" of fewer than four layers are all of them.
LAYERS = {
  "embeddings": lambda x: x[0],
  "second_to_last": lambda x: x[-2],
  "last": lambda x: x[-1],
  "sum_all": lambda x: jnp.sum(x[1:], axis=0),
  "sum_last_four": lambda x: jnp.sum(x[1:][-4:], axis=0),
  "mean_last_four": lambda x: jnp.mean(x[1:][-4:], axis=0),
  "concat_last_four": lambda x: jnp.concatenate([*x[1:][-4:]], axis=-1),
}
# Functions to the layers of which LayerFeatures learns a weighted sum.
MIXES = {
  "weighted_all": lambda x: x,  # With the embeddings, as in ELMo.
  "weighted_last_four": lambda x: x[1:][-4:],
}
CHOICES = (*LAYERS, *MIXES)
# Those that static vectors have, which are embeddings without layers.
OF_EMBEDDINGS = ("embeddings", "last", "weighted_all")


class LayerFeatures(nn.Module):
  """The features of the layers `choice`, one of CHOICES.

  Those of MIXES have parameters: gamma * sum_l softmax(s)_l h_l. With s = 0 and
  gamma = 1 at first, the sum is the layers' mean.
  """

  choice: str

  @nn.compact
  def __call__(self, x):
    """Maps the vectors of all layers [N + 1, R, S, D] to [R, S, F].

    Raises:
      ConfigError: the encoder has no layers to choose.
    """
    if len(x) == 1 and self.choice not in OF_EMBEDDINGS:
      raise ConfigError(
        f"task.layers={self.choice!r}: the encoder has embeddings, but no "
        f"layers; expected {', '.join(OF_EMBEDDINGS)}."
      )
    if self.choice in LAYERS:
      return LAYERS[self.choice](x)
    x = MIXES[self.choice](x)
    scores = self.param("scores", nn.initializers.zeros, (len(x),))
    gamma = self.param("gamma", nn.initializers.ones, ())
    weights = (gamma * jax.nn.softmax(scores)).astype(x.dtype)
    return jnp.einsum("n,nRSD->RSD", weights, x)


def frozen_layers(cfg: EncoderConfig, params: Params, batch: Batch):
  """Returns the vectors of all layers [N + 1, R, S, D], without a gradient.

  There is no dropout, so a text has the same features in training and in
  prediction.
  """
  frozen = {"encoder": jax.lax.stop_gradient(params["encoder"])}
  return masked_lm.encode_layers(cfg, frozen, batch)


def example_layers(cfg: EncoderConfig):
  """Returns zeros [N + 1, 1, 1, D] with which a head is initialised."""
  return jnp.zeros((cfg.num_layers + 1, 1, 1, cfg.width))
