"""Features: tags from the vectors of a frozen encoder.

The feature-based approach of the BERT paper (Devlin et al. 2019,
arXiv:1810.04805, section 5.3): the encoder is not trained; its vectors, of
one layer or of several, are the input of a small head, linear or a
BiLSTM. Everything else is shared with tagging: files, windows, loss, decoding,
metrics and the optional CRF.

No gradient flows into the encoder, so XLA drops its backward pass. Set
optimizer.frozen_layers=-1, as configs/features.py does, so that weight decay
leaves it alone, too.
"""

import dataclasses
import functools

import jax.numpy as jnp

from maskedlm.core.task import Array, Batch, Key, Params
from maskedlm.finetune.common.head import Head
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Setup,
  task_option,
)
from maskedlm.finetune.tagging import tagging
from maskedlm.modeling import masked_lm
from maskedlm.modeling.task_heads.layer_features import (
  CHOICES,
  FeatureHead,
  example_layers,
  frozen_layers,
)


@dataclasses.dataclass(frozen=True)
class Options(tagging.Options):
  """config.task: tagging's options, and those of the features."""

  layers: str = task_option(
    "concat_last_four",
    "The layers whose vectors are the features.",
    choices=CHOICES,
    of_head=True,
  )
  head: str = task_option(
    "bilstm", "The head that computes the tags.", choices=("bilstm", "linear")
  )
  lstm_width: int = task_option(
    768,
    "Width of each direction of the BiLSTM.",
    low=1,
    high=65_536,
    needs={"task.head": ("bilstm",)},
  )


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application."""
  cfg = setup.cfg
  head = FeatureHead(
    cfg,
    options.layers,
    options.lstm_width if options.head == "bilstm" else 0,
    len(setup.label_info["labels"]),
  )

  def init(key: Key) -> Params:
    ids = jnp.ones((1, 1), jnp.int32)
    variables = head.init(key, example_layers(cfg), ids, train=False)
    return {"feature_head": variables["params"]}

  def logits(params: Params, batch: Batch, key: Key, train: bool):
    # The head reads packed rows as well, because an LSTM spends as much time on
    # padding as on tokens.
    scores: Array = head.apply(
      {"params": params["feature_head"]},
      frozen_layers(cfg, params, batch),
      masked_lm.encoder_inputs(batch)["segment_ids"],
      train=train,
      rngs={"dropout": key} if train else {},
    )
    return masked_lm.unpack(scores, batch)

  return tagging.make_tagger(setup, options, Head(init, logits))


def make_task(options: Options) -> FinetuneTask:
  return tagging.make_task(options)._replace(
    name="features",
    options=options,
    make_application=functools.partial(make_application, options=options),
  )
