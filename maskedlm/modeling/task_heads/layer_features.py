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
from maskedlm.modeling.heads import ROW_POOLS
from maskedlm.modeling.layers import Dense, Dropout
from maskedlm.modeling.lstm import BiLstm

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
LSTM_LAYERS = 2  # As in the BERT paper.


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


class FeatureHead(nn.Module):
  """Features, an optional BiLSTM, a dense layer: the scores of each tag."""

  cfg: EncoderConfig
  layers: str  # One of CHOICES.
  lstm_width: int  # Of each direction; 0 for no LSTM.
  num_tags: int

  @nn.compact
  def __call__(self, x, segment_ids, *, train: bool):
    """Maps all layers x [N + 1, R, S, D] to float32 logits [R, S, T].

    segment_ids is [R, S].
    """
    cfg = self.cfg
    x = LayerFeatures(self.layers, name="layers")(x)
    if self.lstm_width:
      lstm = BiLstm(self.lstm_width, LSTM_LAYERS, cfg.dropout, cfg.dtype)
      x = lstm(x, segment_ids, train=train)
    R, S, F = x.shape
    x = Dropout(cfg.dropout)(x.reshape(R * S, F), train=train)
    T = self.num_tags
    x = Dense((F,), (T,), cfg.init_stddev, cfg.dtype, name="dense")(x)
    return x.reshape(R, S, T).astype(jnp.float32)


class LogisticRegression(nn.Module):
  """A dense layer on the vector of each row."""

  cfg: EncoderConfig
  layers: str  # One of CHOICES.
  vector: str  # One of ROW_POOLS.
  outputs: int

  @nn.compact
  def __call__(self, x, batch: Batch):
    """Maps all layers x [N + 1, R, S, D] to float32 logits [B, outputs]."""
    x = LayerFeatures(self.layers, name="layers")(x)
    x = masked_lm.unpack(x, batch).astype(jnp.float32)
    pool = ROW_POOLS[self.vector]
    x = pool(self.cfg, x, batch["segment_ids"])
    init = nn.initializers.zeros
    return nn.Dense(self.outputs, kernel_init=init, name="dense")(x)


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
