"""Losses (in nats) and accuracies as float32 (sum, weight) pairs for each row.

The mean, sum / weight, is taken only where it is printed or differentiated, so
it is exact over microbatches, devices and padded batches.
"""

import jax
import jax.numpy as jnp

from maskedlm.modeling import reports
from maskedlm.modeling.arrays import Array, Bool, Float, Int
from maskedlm.modeling.layers import on_cpu

UNSEEN = -1  # In place of the id of a label that the model doesn't have.


@jax.custom_vjp
def loss_and_correct(
  logits: Float[Array, "*B V"], labels: Int[Array, "*B"]
) -> tuple[Float[Array, "*B"], Bool[Array, "*B"]]:
  """Returns (loss, correct) of each label.

  The loss is -log softmax(logits)[labels]; a label is correct if its logit is
  the largest (the first of equals). The backward pass computes probability
  minus label from the logits and their normaliser, so no other array of that
  size is kept.
  """
  return _forward(logits, labels)[0]


def _forward(logits, labels):
  wide = logits.astype(jnp.float32)
  picked = logits_of_labels(wide, labels)
  normaliser = jax.nn.logsumexp(wide, axis=-1)
  # XLA:CPU does not vectorise an argmax: it took 5% of a step of 4x256.
  label, logit = labels[..., None], picked[..., None]
  is_lower = jnp.where(_ids(wide) < label, wide < logit, wide <= logit)
  correct = is_lower.all(axis=-1)
  return (normaliser - picked, correct), (logits, labels, normaliser)


def _backward(saved, grads):
  logits, labels, normaliser = saved
  wide = logits.astype(jnp.float32)
  grad = grads[0]
  share = jnp.exp(wide - normaliser[..., None])
  if on_cpu():  # Only the labels' are changed; see logits_of_labels.
    at_label = jnp.exp(logits_of_labels(wide, labels) - normaliser) - 1
    places = jnp.indices(labels.shape, sparse=True)
    error = (share * grad[..., None]).at[*places, labels].set(at_label * grad)
  else:
    error = (share - (_ids(wide) == labels[..., None])) * grad[..., None]
  return error.astype(logits.dtype), None


loss_and_correct.defvjp(_forward, _backward)


def loss_and_accuracy(
  logits: Float[Array, "B *P V"], labels: Int[Array, "B *P"], *, weights: Array
):
  """Returns cross-entropy and accuracy as pairs (sum [B], weight [B]).

  These are -sum_i w_i log softmax(logits_i)[labels_i], how often the label has
  the largest logit, and sum_i w_i, float32.

  Args:
    logits: of any float type. The ids that pad the vocabulary have -1e9: they
      contribute nothing and receive no gradient.
    labels: UNSEEN adds nothing to the loss, and is never right.
    weights: 0 for labels to ignore.

  Two rows of two labels among four; the last label is ignored. Equal logits
  cost log 4 = 1.386 nats, and the first of them counts as the largest:

  >>> logits, labels = jnp.zeros([2, 2, 4]), jnp.array([[0, 3], [1, 0]])
  >>> weights = jnp.array([[1.0, 1.0], [1.0, 0.0]])
  >>> loss, right = loss_and_accuracy(logits, labels, weights=weights)
  >>> [f"{x:.3f}" for x in loss[0]], loss[1].tolist(), right[0].tolist()
  (['2.773', '1.386'], [2.0, 1.0], [1.0, 0.0])
  """
  reports.report(logits, weights)
  is_known = labels != UNSEEN
  loss, correct = loss_and_correct(logits, labels)
  return (
    weighted_sum(loss, weights * is_known),
    weighted_sum(correct & is_known, weights),
  )


def divergence(own, other):
  """Returns KL(softmax(other) || softmax(own)), nats, of logits [..., C].

  >>> own, other = jnp.zeros(2), jnp.log(jnp.array([3.0, 1.0]))
  >>> f"{divergence(own, other):.4f}"  # log 2 less the entropy of 3/4, 1/4.
  '0.1308'
  """
  p, log_p = jax.nn.softmax(other), jax.nn.log_softmax(other)
  gap = log_p - jax.nn.log_softmax(own)
  return jnp.sum(jnp.where(p > 0, p * gap, 0), axis=-1)


def weighted_sum(
  values: Array, weights: Array
) -> tuple[Float[jax.Array, " B"], Float[jax.Array, " B"]]:
  """Returns each row's sums of values * weights and of weights [B, ...].

  >>> values, weights = jnp.array([[1.0, 5.0]]), jnp.array([[1.0, 0.5]])
  >>> [x.tolist() for x in weighted_sum(values, weights)]
  [[3.5], [1.5]]
  """
  weights = weights.astype(jnp.float32)
  return sum_rows(values * weights), sum_rows(weights)


def sum_rows(values: Float[Array, "B *P"]) -> Float[jax.Array, " B"]:
  """Returns the sums of the rows."""
  return jnp.sum(values, axis=tuple(range(1, values.ndim)))


def logits_of_labels(
  logits: Float[Array, "*B V"], labels: Int[Array, "*B"]
) -> Float[Array, "*B"]:
  """Returns the entries of logits at labels.

  A CPU gathers them. Elsewhere labels are compared with all ids, so that a
  vocabulary that is split over devices stays split.
  """
  if on_cpu():
    picked = jnp.take_along_axis(
      logits, labels[..., None], axis=-1, mode="clip"
    )
    return picked[..., 0]
  is_label = _ids(logits) == labels[..., None]
  return jnp.sum(jnp.where(is_label, logits, 0), axis=-1)


def _ids(logits):
  return jnp.arange(logits.shape[-1])
