"""Losses from a teacher's scores of a query's own passages.

With s the cosines divided by a temperature T, and t the teacher's scores
divided by one of their own,

  margin_mse  T^2 ((s_right - s_wrong) - (t_right - t_wrong))^2 of each wrong
              passage (Hofstätter et al. 2020, arXiv:2010.02666)
  kl          T^2 KL(softmax(t) || softmax(s)) of each query (Lin et al. 2020,
              arXiv:2010.11386)

With widths, the losses of the first d numbers are added. Dimensions: B
examples, K passages in each, the first of which is right.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import DataError
from maskedlm.core.task import Batch, Metrics
from maskedlm.data.labelled.formats.passages import Example
from maskedlm.finetune.contract import Rows
from maskedlm.finetune.retrieval.contrastive import normalise
from maskedlm.modeling import losses

KINDS = ("margin_mse", "kl")


def check_scores(examples: Sequence[Example], kind: str) -> None:
  """Raises DataError if one of the training examples has no scores."""
  for example in examples:
    if not example.scores:
      raise DataError(
        f"{example.where}: no scores, which task.loss={kind} learns from; "
        "expected a column `scores` beside the negatives, as `maskedlm mine` "
        "writes it, or --config.task.loss=contrastive."
      )


def with_scores(rows: Rows, examples: Sequence[Example]) -> Rows:
  """Returns rows with the value scores [n, K], NaN where there are none."""
  scores = np.full(rows.values["passage_ids"].shape, np.nan, np.float32)
  for row, example in zip(scores, examples, strict=True):
    row[: len(example.scores)] = example.scores
  return rows._replace(values={**rows.values, "scores": scores})


def loss_and_metrics(
  kind: str,
  x,
  batch: Batch,
  *,
  temperature: float,
  teacher_temperature: float,
  widths: Sequence[int] = (),
) -> tuple[Metrics, Metrics]:
  """Returns (terms, metrics) as Task.loss; metrics are of whole vectors.

  x is float32 [B, 1 + K, D], a query and its passages; the batch has scores
  [B, K], NaN for missing passages; widths are below D, which always counts.
  """
  is_there = jnp.isfinite(batch["scores"])
  t = jnp.where(is_there, batch["scores"], 0) / teacher_temperature
  weights = batch["example_weights"] * (jnp.sum(is_there, axis=1) > 1)
  terms, metrics = {}, {}
  for d in (*widths, x.shape[-1]):
    cut = normalise(x[..., :d])
    s = jnp.einsum("BD,BKD->BK", cut[:, 0], cut[:, 1:], precision="highest")
    s /= temperature
    if kind == "margin_mse":
      error = (s[:, :1] - s[:, 1:]) - (t[:, :1] - t[:, 1:])
      value, counts = error**2, weights[:, None] * is_there[:, 1:]
    else:
      student, teacher = (jnp.where(is_there, v, -1e9) for v in (s, t))
      value, counts = losses.divergence(student, teacher), weights
    name = f"{kind}_{d}" if d in widths else kind
    terms[name] = losses.weighted_sum(temperature**2 * value, counts)
    is_first = jnp.all(~is_there | (s <= s[:, :1]), axis=1)
    metrics["first_is_right"] = losses.weighted_sum(is_first, weights)
  return terms, metrics
