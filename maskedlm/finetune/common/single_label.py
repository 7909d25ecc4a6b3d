"""One label per example: the Application of a task that chooses among labels.

Such a task has a Head and, in Rows.values, "labels" [n]: ids of the correct
ones of C labels, or labels.UNSEEN.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import softmax

from maskedlm.core.task import Batch, Key, Params
from maskedlm.finetune.common.head import Head
from maskedlm.finetune.contract import (
  Application,
  Example,
  Outputs,
  Prediction,
  Rows,
)
from maskedlm.modeling.losses import loss_and_accuracy
from maskedlm.modeling.task_heads.ensemble import alone, mean_softmax


def make_classifier(
  head: Head,
  *,
  make_rows: Callable[[Sequence[Example]], Rows],
  predict: Callable[[Example, list[float]], Prediction],
  score: Callable[..., dict[str, float]],
  best: str,
  has_label: Callable[[Example], bool],
  require_labels: Callable[[Sequence[Example]], Any],
  term: str,
  metric: str = "accuracy",
) -> Application:
  """Returns the Application of a head whose logits are [B, C].

  Args:
    head: with logits [B, C].
    make_rows, score, best, has_label, require_labels: as in Application.
    predict: (example, probabilities of the C labels) -> prediction.
    term: name of the cross-entropy in the losses.
    metric: name of the accuracy in the metrics.
  """

  def loss(params: Params, batch: Batch, key: Key, train: bool):
    loss, accuracy = loss_and_accuracy(
      head.logits(params, batch, key, train),
      batch["labels"],
      weights=batch["example_weights"],
    )
    return {term: loss}, {metric: accuracy}

  def decode(
    examples: Sequence[Example], rows: Rows, outputs: Outputs, tuned
  ) -> list[Prediction]:
    logits = outputs["logits"] if examples else []
    return [
      predict(example, softmax(np.float64(x)).tolist())
      for example, x in zip(examples, logits, strict=True)
    ]

  def outputs(params: Params, batch: Batch, every=alone):
    logits = every(head.logits(params, batch, None, False))
    return {"logits": mean_softmax(logits)}

  return Application(
    make_rows=make_rows,
    init=head.init,
    loss=loss,
    outputs=outputs,
    decode=decode,
    score=score,
    best=best,
    has_label=has_label,
    require_labels=require_labels,
  )
