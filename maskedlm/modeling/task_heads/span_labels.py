"""Heads that give each span of a row a label, or NULL, whose id is 0.

NULL is a label like the others in the loss, plain cross-entropy over all spans.
A span's margin is the log-odds of its best label against NULL.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from maskedlm.core.task import Array, Batch, Params
from maskedlm.modeling.losses import loss_and_accuracy, weighted_sum
from maskedlm.modeling.task_heads.span_vectors import (
  SpanScorer,
  score_all_spans,
)

NULL = 0
_SPAN_SHARE = 0.01  # The initial share of labelled spans; see expecting_null.


def expecting_null(params: Params) -> Params:
  """Returns fresh parameters of a SpanHead with a bias that makes NULL likely.

  Nearly all spans are NULL, and without the bias the first steps would only
  learn that (Lin et al., arXiv:1708.02002, section 4.1).
  """
  others = len(params["label_dense"]["bias"]) - 1
  return with_odds(params, NULL, (1 - _SPAN_SHARE) / _SPAN_SHARE * others)


def with_odds(params: Params, label: int, odds: float) -> Params:
  """Returns parameters of a SpanHead whose bias of a label is log(odds)."""
  dense = params["label_dense"]
  bias = dense["bias"].at[label].set(math.log(odds))
  return {**params, "label_dense": {**dense, "bias": bias}}


def loss_and_recall(
  head: SpanScorer, hidden, batch: Batch, labels
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
  """Returns the cross-entropy of all spans, and how many labels are found.

  Args:
    head: gives the logits.
    hidden: [B, L, D], the encoder's vectors.
    batch: as for score_all_spans, with example_weights [B].
    labels: [widths, B, W], at [i, b, j] the label of the span of i + 1 words
      that begins with word j; may be UNSEEN.

  Returns:
    (sum [B], weight [B]) of the loss over spans, and of the gold labels that
    are the likeliest.
  """

  def add(sums, labels, logits, scored):
    weights = scored * batch["example_weights"][:, None]
    terms, _ = loss_and_accuracy(logits, labels, weights=weights)
    gold = weights * (labels != NULL)
    right = jnp.argmax(logits, axis=-1) == labels
    added = (terms, weighted_sum(right, gold))
    return jax.tree.map(jnp.add, sums, added), None

  zeros = ((jnp.zeros(len(hidden)), jnp.zeros(len(hidden))),) * 2
  sums, _ = score_all_spans(
    head, hidden, batch, add, zeros, per_width=labels, max_words=len(labels)
  )
  return sums


def likeliest_spans(
  head: SpanScorer,
  hidden,
  batch: Batch,
  *,
  max_words: int,
  count: int,
  mean: Callable[[Array], Array],
) -> dict[str, Array]:
  """Returns the spans of each row with the largest margins, [B, count] each.

  Args:
    head, hidden, batch: as for loss_and_recall.
    max_words: the words of the widest span.
    count: how many spans; fewer if a row has fewer places.
    mean: logits [B, W, T] -> those of an ensemble's members together.

  Returns:
    margins (-inf where there is no span), begins (words of the row), widths (in
    words), labels (the best but NULL) and probabilities of these labels.
  """

  def best_labels(carry, _, logits, scored):
    logits = mean(logits)
    best = jnp.argmax(logits[..., 1:], axis=-1) + 1
    logit = jnp.max(logits[..., 1:], axis=-1)
    margin = jnp.where(scored, logit - logits[..., NULL], -jnp.inf)
    probability = jnp.exp(logit - jax.nn.logsumexp(logits, axis=-1))
    return carry, (margin, best.astype(jnp.int32), probability)

  _, best = score_all_spans(
    head, hidden, batch, best_labels, (), max_words=max_words
  )
  widths, B, W = best[0].shape
  margins, labels, probabilities = (
    jnp.moveaxis(x, 0, 2).reshape(B, W * widths) for x in best
  )
  margins, places = jax.lax.top_k(margins, min(count, W * widths))
  return {
    "margins": margins,
    "begins": (places // widths).astype(jnp.int32),
    "widths": (places % widths + 1).astype(jnp.int32),
    "labels": jnp.take_along_axis(labels, places, axis=1),
    "probabilities": jnp.take_along_axis(probabilities, places, axis=1),
  }
