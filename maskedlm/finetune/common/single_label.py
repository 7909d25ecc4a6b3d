"""One label per example: what the tasks that choose among labels share.

Such a task has a function `logits` and, in its Rows, the value "labels" [n]:
the correct one of C, or unseen_labels.UNSEEN. Three fields of its Application
are made here.
"""

from collections.abc import Callable, Sequence

import jax
import numpy as np

from maskedlm.core.task import Batch, Key, Params
from maskedlm.finetune.common import unseen_labels
from maskedlm.finetune.contract import Example, Outputs, Prediction, Rows

# (params, batch, key, train) -> float32 [B, C].
Logits = Callable[[Params, Batch, Key, bool], jax.Array]


def loss(logits: Logits, *, term: str, metric: str = "accuracy"):
  """Returns Application.loss: cross-entropy and accuracy, under these names."""

  def loss_of_batch(params: Params, batch: Batch, key: Key, train: bool):
    loss, accuracy = unseen_labels.loss_and_accuracy(
      logits(params, batch, key, train),
      batch["labels"],
      weights=batch["example_weights"],
    )
    return {term: loss}, {metric: accuracy}

  return loss_of_batch


def outputs(logits: Logits):
  """Returns Application.outputs: the logits."""
  return lambda params, batch: {"logits": logits(params, batch, None, False)}


def decode(predict: Callable[[Example, list[float]], Prediction]):
  """Returns Application.decode: predict(example, the labels' probabilities)."""

  def decode_examples(
    examples: Sequence[Example], rows: Rows, outputs: Outputs, tuned
  ) -> list[Prediction]:
    del rows, tuned
    rows_logits = outputs["logits"] if examples else []
    return [
      predict(example, _softmax(x).tolist())
      for example, x in zip(examples, rows_logits, strict=True)
    ]

  return decode_examples


def _softmax(logits) -> np.ndarray:
  """Returns the probabilities, float64 [C], of logits [C]."""
  exp = np.exp(np.float64(logits) - np.max(logits))
  return exp / exp.sum()
