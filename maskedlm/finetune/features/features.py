"""Features: tags from the vectors of a frozen encoder.

The feature-based way of the BERT paper (Devlin et al. 2019, arXiv:1810.04805,
section 5.3): the encoder doesn't learn; its vectors, of one layer or of the
last four, go into a small head, linear or a BiLSTM. Everything else is
tagging's: files, windows, loss, decoding, metrics and a CRF if wanted.

Nothing flows back into the encoder, so that XLA leaves its backward pass out.
That it doesn't decay either takes optimizer.frozen_layers=-1, as in
configs/features.py.
"""

import collections
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.core.errors import ConfigError, check_known
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.contract import Application
from maskedlm.finetune.tagging import tagging
from maskedlm.finetune.tagging.lstm import BiLstm
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.layers import Dense, Dropout


class Own(NamedTuple):
  """The options that tagging doesn't have."""

  layers: str = "concat_last_four"  # A name of LAYERS.
  head: str = "bilstm"  # bilstm | linear.
  lstm_width: int = 768  # Of each direction.
  lstm_layers: int = 2


# A NamedTuple, as every kind's: its own options, then tagging's.
Options = collections.namedtuple(
  "Options",
  (*Own._fields, *tagging.Options._fields),
  defaults=(*Own(), *tagging.Options()),
)

# The vectors of all layers [N + 1, R, S, D] -> the features [R, S, any]. The
# embeddings are the first; of an encoder with fewer than four layers, "the last
# four" are all.
LAYERS = {
  "embeddings": lambda x: x[0],
  "second_to_last": lambda x: x[-2],
  "last": lambda x: x[-1],
  "sum_last_four": lambda x: jnp.sum(x[1:][-4:], axis=0),
  "mean_last_four": lambda x: jnp.mean(x[1:][-4:], axis=0),
  "concat_last_four": lambda x: jnp.concatenate([*x[1:][-4:]], axis=-1),
}
HEADS = ("bilstm", "linear")

# Of tagging, as it is.
parse, describe, EXAMPLES = tagging.parse, tagging.describe, tagging.EXAMPLES
READING = tagging.READING
show, report, export = tagging.show, tagging.report, tagging.export


def read(source: str, options: Any) -> list[tagging.Example]:
  """The sentences of a file: see tagging.read."""
  check(options)
  return tagging.read(source, options)


class FeatureHead(nn.Module):
  """A BiLSTM if wanted, then W: a score of each tag for each token."""

  cfg: EncoderConfig
  options: Any  # Options.
  num_tags: int

  @nn.compact
  def __call__(self, x, segment_ids, *, train: bool):
    """x [R, S, F], segment_ids [R, S] -> float32 logits [R, S, T]."""
    cfg, options = self.cfg, self.options
    if options.head == "bilstm":
      lstm = BiLstm(
        options.lstm_width, options.lstm_layers, cfg.dropout, cfg.dtype
      )
      x = lstm(x, segment_ids, train=train)
    R, S, F = x.shape
    x = Dropout(cfg.dropout)(x.reshape(R * S, F), train=train)
    T = self.num_tags
    x = Dense((F,), (T,), cfg.init_stddev, cfg.dtype, name="dense")(x)
    return x.reshape(R, S, T).astype(jnp.float32)


def make(
  tokenizer: Tokenizer,
  cfg: EncoderConfig,
  about: Mapping[str, Any],
  options: Any,
  *,
  length: int,
) -> Application:
  """See application.py.

  Raises:
    ConfigError: options that don't exist or don't go together.
  """
  check(options)
  head = FeatureHead(cfg, options, len(about["labels"]))
  choose = LAYERS[options.layers]

  def init(key: Key) -> Params:
    layers = jnp.zeros((cfg.num_layers + 1, 1, 1, cfg.width))
    ids = jnp.ones((1, 1), jnp.int32)
    made = head.init(key, choose(layers), ids, train=False)
    return {"feature_head": made["params"]}

  def logits(params: Params, batch: Batch, key: Key, train: bool):
    frozen = {"encoder": jax.lax.stop_gradient(params["encoder"])}
    # Without dropout: features are the same in training and afterwards.
    x = choose(masked_lm.encode_layers(cfg, frozen, batch))
    # The head, too, reads the rows as they are packed: there is little padding,
    # on which an LSTM works as well.
    scores = head.apply(
      {"params": params["feature_head"]},
      x,
      masked_lm.encoder_inputs(batch)["segment_ids"],
      train=train,
      rngs={"dropout": key} if train else {},
    )
    return masked_lm.unpack(scores, batch)

  return tagging.assemble(
    tokenizer, about, options, length=length, init=init, logits=logits
  )


def check(options: Any) -> None:
  """Raises ConfigError for options that don't exist."""
  check_known("task", options, {"layers": LAYERS, "head": HEADS})
  for name in ("lstm_width", "lstm_layers"):
    if getattr(options, name) < 1:
      raise ConfigError(
        f"task.{name}={getattr(options, name)} must be 1 or more."
      )
