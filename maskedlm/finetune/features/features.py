"""Features: tags from the vectors of a frozen encoder.

The feature-based approach of the BERT paper (Devlin et al. 2019,
arXiv:1810.04805, section 5.3): the encoder is not trained; its vectors, from
one layer or from the last four, are the input of a small head, linear or a
BiLSTM. Everything else is shared with tagging: files, windows, loss, decoding,
metrics and the optional CRF.

No gradient flows into the encoder, so XLA drops its backward pass. Set
optimizer.frozen_layers=-1, as configs/features.py does, so that weight decay
leaves it alone, too.
"""

import dataclasses

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.core.task import Batch, Key, Params
from maskedlm.finetune.common.head import Head
from maskedlm.finetune.contract import Application, Setup, task_option
from maskedlm.finetune.tagging import tagging
from maskedlm.finetune.tagging.lstm import BiLstm
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.layers import Dense, Dropout

# Functions from all layers' vectors [N + 1, R, S, D], the embeddings first, to
# features [R, S, F]. The "last four" of fewer than four layers are all of them.
LAYERS = {
  "embeddings": lambda x: x[0],
  "second_to_last": lambda x: x[-2],
  "last": lambda x: x[-1],
  "sum_last_four": lambda x: jnp.sum(x[1:][-4:], axis=0),
  "mean_last_four": lambda x: jnp.mean(x[1:][-4:], axis=0),
  "concat_last_four": lambda x: jnp.concatenate([*x[1:][-4:]], axis=-1),
}


@dataclasses.dataclass(frozen=True)
class Options(tagging.Options):
  """config.task: tagging's options, and those of the features."""

  layers: str = task_option(
    "concat_last_four",
    "The layers whose vectors are the features.",
    choices=tuple(LAYERS),
  )
  head: str = task_option(
    "bilstm", "The head that computes the tags.", choices=("bilstm", "linear")
  )
  lstm_width: int = task_option(
    768, "Width of each direction of the BiLSTM.", low=1, high=65_536
  )
  lstm_layers: int = task_option(2, "Layers of the BiLSTM.", low=1, high=64)


class FeatureHead(nn.Module):
  """An optional BiLSTM, then a dense layer: the scores of each token's tags."""

  cfg: EncoderConfig
  options: Options
  num_tags: int

  @nn.compact
  def __call__(self, x, segment_ids, *, train: bool):
    """Maps x [R, S, F], segment_ids [R, S] to float32 logits [R, S, T]."""
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


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application."""
  cfg = setup.cfg
  head = FeatureHead(cfg, options, len(setup.label_info["labels"]))
  select_features = LAYERS[options.layers]

  def init(key: Key) -> Params:
    layers = jnp.zeros((cfg.num_layers + 1, 1, 1, cfg.width))
    ids = jnp.ones((1, 1), jnp.int32)
    variables = head.init(key, select_features(layers), ids, train=False)
    return {"feature_head": variables["params"]}

  def logits(params: Params, batch: Batch, key: Key, train: bool):
    frozen = {"encoder": jax.lax.stop_gradient(params["encoder"])}
    # Without dropout, so features are the same in training and in prediction.
    x = select_features(masked_lm.encode_layers(cfg, frozen, batch))
    # The head reads packed rows as well, because an LSTM spends as much time on
    # padding as on tokens.
    scores = head.apply(
      {"params": params["feature_head"]},
      x,
      masked_lm.encoder_inputs(batch)["segment_ids"],
      train=train,
      rngs={"dropout": key} if train else {},
    )
    return masked_lm.unpack(scores, batch)

  return tagging.make_tagger(setup, options, Head(init, logits))


def without_effect(options: Options) -> dict[str, str]:
  """Returns the options that have no effect beside others, and why."""
  found = tagging.without_effect(options)
  if options.head != "bilstm":
    for name in ("lstm_width", "lstm_layers"):
      found[name] = f"beside task.head={options.head!r}"
  return found


TASK = tagging.TASK._replace(
  name="features",
  options=Options,
  make_application=make_application,
  without_effect=without_effect,
)
