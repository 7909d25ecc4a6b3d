"""One label of several for each example: what the kinds that choose share.

Such a kind has a function `logits` and, in its Rows, the value "labels" [n]:
which of C is right, or unknown.UNKNOWN. Three fields of its Application are
then made here, as in classification.py.
"""

from collections.abc import Callable, Sequence

import jax
import numpy as np

from maskedlm.core.task import (Batch, Key, Params)
from maskedlm.finetune.common import unseen_labels
from maskedlm.finetune.contract import (Example, Outputs, Prediction, Rows)

# (params, batch, key, train) -> float32 [B, C].
Logits = Callable[[Params, Batch, Key, bool], jax.Array]


def loss(logits: Logits, *, term: str, metric: str = "accuracy"):
  """Application.loss: the labels' cross-entropy and accuracy, so named."""

  def of_batch(params: Params, batch: Batch, key: Key, train: bool):
    found = logits(params, batch, key, train)
    nats, hits = unseen_labels.loss_and_accuracy(
      found, batch["labels"], weights=batch["example_weights"]
    )
    return {term: nats}, {metric: hits}

  return of_batch


def outputs(logits: Logits):
  """Application.outputs: the logits."""
  return lambda params, batch: {"logits": logits(params, batch, None, False)}


def decode(predict: Callable[[Example, list[float]], Prediction]):
  """Application.decode: predict(example, the probability of each label)."""

  def of_examples(
    examples: Sequence[Example], rows: Rows, outputs: Outputs, tuned
  ) -> list[Prediction]:
    del rows, tuned
    found = outputs["logits"] if examples else []
    return [
      predict(example, _softmax(x).tolist())
      for example, x in zip(examples, found, strict=True)
    ]

  return of_examples


def _softmax(logits) -> np.ndarray:
  """[C] -> float64 [C]."""
  shares = np.exp(np.float64(logits) - np.max(logits))
  return shares / shares.sum()
