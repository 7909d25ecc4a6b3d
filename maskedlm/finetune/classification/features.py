"""Text features: labels of texts and pairs from a frozen encoder's vectors.

The encoder is not trained: the vector of [CLS], or the mean of the tokens, of
one layer or of several, is the input of a logistic regression (for numbers, of
a linear one). Files, labels, metrics and predictions are classification's.

No gradient flows into the encoder, so XLA drops its backward pass. Set
optimizer.frozen_layers=-1, as configs/text_features.py does, so that weight
decay leaves it alone, too.
"""

import dataclasses

import jax.numpy as jnp

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Batch, Key, Params
from maskedlm.finetune.classification import classification
from maskedlm.finetune.common.head import Head
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Setup,
  task_option,
)
from maskedlm.modeling.heads import ROW_POOLS
from maskedlm.modeling.task_heads.layer_features import (
  CHOICES,
  LogisticRegression,
  example_layers,
  frozen_layers,
)


@dataclasses.dataclass(frozen=True)
class Options(classification.FileOptions):
  """config.task: classification's files, and the features."""

  layers: str = task_option(
    "last",
    "The layers whose vectors are the features.",
    choices=CHOICES,
    of_head=True,
  )
  vector: str = task_option(
    "cls",
    "The vector of a row: that of [CLS] (of a left-to-right encoder, of the "
    "last token), or the mean of its tokens'.",
    choices=tuple(ROW_POOLS),
    of_head=True,
  )


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application.

  Raises:
    ConfigError: as classification.make_application, or [CLS] has the same
      vector in every text, as in an encoder without layers.
  """
  cfg = setup.cfg
  if options.vector == "cls" and not cfg.num_layers:
    raise ConfigError(
      "task.vector='cls': static vectors have one for [CLS], whatever the "
      "text; set --config.task.vector=mean."
    )

  def make_head(outputs: int) -> Head:
    module = LogisticRegression(cfg, options.layers, options.vector, outputs)

    def init(key: Key) -> Params:
      batch = {"segment_ids": jnp.ones((1, 1), jnp.int32)}
      variables = module.init(key, example_layers(cfg), batch)
      return {"feature_head": variables["params"]}

    def logits(params: Params, batch: Batch, key: Key | None, train: bool):
      del key, train  # There is no dropout.
      x = frozen_layers(cfg, params, batch)
      return module.apply({"params": params["feature_head"]}, x, batch)

    return Head(init, logits)

  return classification.make_labeller(setup, options, make_head)


def make_task(options: Options) -> FinetuneTask:
  return classification.make_labelling_task(
    "text_features", options, make_application
  )
