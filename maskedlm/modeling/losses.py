"""Losses and accuracies as (sum, weight) pairs, in float32 and nats.

A mean is sum / weight, taken only when it is printed or differentiated: it is
then exact over microbatches, devices and padded batches.
"""

import jax
import jax.numpy as jnp


def cross_entropy(logits, labels, *, weights):
  """-sum_i w_i log softmax(logits_i)[labels_i], and sum_i w_i.

  Args:
    logits: [..., V], of any float type. The ids of a padded vocabulary hold
      -1e9: they count nothing and no gradient flows into them.
    labels: [...] ids.
    weights: [...] float, 0 for what does not count.

  Returns:
    (sum, weight), float32 scalars.
  """
  return weigh(score(logits, labels)[0], weights)


def accuracy(logits, labels, *, weights):
  """How often the largest of logits [..., V] is labels [...]: (sum, weight)."""
  return weigh(score(logits, labels)[1], weights)


def score(logits, labels):
  """Each label's own: logits [..., V], labels [...] -> (nats, hits), [...].

  nats is -log softmax(logits)[labels], float32; hits, whether the largest of
  the logits (of equals, the first) is the label's.
  """
  hits = jnp.argmax(logits, axis=-1) == labels
  logits = logits.astype(jnp.float32)
  nats = jax.nn.logsumexp(logits, axis=-1) - pick(logits, labels)
  return nats, hits


def weigh(values, weights):
  """values and weights [...] -> (sum of their products, sum of weights)."""
  weights = weights.astype(jnp.float32)
  return jnp.sum(values * weights), jnp.sum(weights)


def pick(logits, labels):
  """logits [..., V] at labels [...] -> [...].

  A comparison, not a gather: a vocabulary that is split over devices stays
  split, and the gradient fuses into the softmax's instead of being scattered.
  """
  ids = jnp.arange(logits.shape[-1])
  return jnp.sum(jnp.where(ids == labels[..., None], logits, 0), axis=-1)
