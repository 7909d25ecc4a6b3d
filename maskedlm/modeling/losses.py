"""Losses and accuracies as (sum, weight) pairs of rows, in float32 and nats.

A mean is sum / weight, taken only when it is printed or differentiated: it is
then exact over microbatches, devices and padded batches.
"""

import jax
import jax.numpy as jnp


def cross_entropy(logits, labels, *, weights):
  """-sum_i w_i log softmax(logits_i)[labels_i], and sum_i w_i, of each row.

  Args:
    logits: [B, ..., V], of any float type. The ids of a padded vocabulary hold
      -1e9: they count nothing and no gradient flows into them.
    labels: [B, ...] ids.
    weights: [B, ...] float, 0 for what does not count.

  Returns:
    (sum, weight), float32 [B] each.
  """
  return weighted_sum(loss_and_correct(logits, labels)[0], weights)


def accuracy(logits, labels, *, weights):
  """How often the largest of logits is the label; as cross_entropy."""
  return weighted_sum(loss_and_correct(logits, labels)[1], weights)


@jax.custom_vjp
def loss_and_correct(logits, labels):
  """Each label's own: logits [..., V], labels [...] -> (nats, hits), [...].

  nats is -log softmax(logits)[labels], float32; hits, whether the largest of
  the logits (of equals, the first) is the label's. Backward makes probability
  minus label of the logits and their normaliser; nothing else as large is kept.
  """
  return _forward(logits, labels)[0]


def _forward(logits, labels):
  wide = logits.astype(jnp.float32)
  picked = logits_of_labels(wide, labels)
  normaliser = jax.nn.logsumexp(wide, axis=-1)
  # Not by argmax, which XLA:CPU doesn't vectorise: 5% of a step of 4x256.
  at, ours = labels[..., None], picked[..., None]
  fits = jnp.where(_ids(wide) < at, wide < ours, wide <= ours)
  hits = fits.all(axis=-1)
  return (normaliser - picked, hits), (logits, labels, normaliser)


def _backward(saved, grads):
  logits, labels, normaliser = saved
  wide = logits.astype(jnp.float32)
  error = jnp.exp(wide - normaliser[..., None])
  error -= _ids(wide) == labels[..., None]
  return (error * grads[0][..., None]).astype(logits.dtype), None


loss_and_correct.defvjp(_forward, _backward)


def weighted_sum(values, weights):
  """values, weights [B, ...] -> (sum of the products, of the weights), [B]."""
  weights = weights.astype(jnp.float32)
  return sum_rows(values * weights), sum_rows(weights)


def sum_rows(values):
  """values [B, ...] -> their sum of each row, [B]."""
  return jnp.sum(values, axis=tuple(range(1, values.ndim)))


def logits_of_labels(logits, labels):
  """logits [..., V] at labels [...] -> [...].

  A comparison, not a gather: a vocabulary that is split over devices stays
  split, and the gradient fuses into the softmax's instead of being scattered.
  """
  is_label = _ids(logits) == labels[..., None]
  return jnp.sum(jnp.where(is_label, logits, 0), axis=-1)


def _ids(logits):
  return jnp.arange(logits.shape[-1])
