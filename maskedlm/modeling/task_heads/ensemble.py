"""Ensembles: the mean of several checkpoints' scores, on the device.

A task writes its outputs as a function (params, batch, every=alone) -> arrays.
Its model's scores x go through every(x), which returns the scores of all E
members, [E, ...], or of the one model, [1, ...]. A mean of this module makes
them one again, and the task selects from the mean as it would from a model's:

  def outputs(params, batch, every=alone):
    logits = mean_softmax(every(head.logits(params, batch, None, False)))
    return likeliest_tags(logits)

The members read a batch together, and what follows a mean is computed once. Of
one model, means are its own scores, to the bit.
"""

import functools
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp

from maskedlm.core.task import Array, Batch, Params

_MEMBERS = "members"  # The name of vmap's axis.


def alone(x: Array) -> Array:
  """Returns the scores [1, ...] of one model as those of all members."""
  return x[None]


def over_members(
  outputs: Callable[..., Mapping[str, Array]],
) -> Callable[[Params, Batch], Mapping[str, Array]]:
  """Returns (params of E checkpoints, [E, ...] each, batch) -> their outputs.

  Args:
    outputs: (params, batch, every=) -> arrays, all of them made from the
      results of `every` and from the batch.
  """
  of_member = functools.partial(
    outputs, every=lambda x: jax.lax.all_gather(x, _MEMBERS)
  )
  return jax.vmap(of_member, (0, None), None, axis_name=_MEMBERS)


def mean_softmax(logits: Array) -> Array:
  """Returns logits [..., T] of the mean softmax of logits [E, ..., T].

  Their log-normaliser is the mean of the members', so that the results of
  several rows, such as the windows of a text, are comparable if theirs are.
  """
  if len(logits) == 1:
    return logits[0]
  normaliser = jax.nn.logsumexp(logits, axis=-1, keepdims=True)
  return _log_mean_exp(logits - normaliser) + jnp.mean(normaliser, axis=0)


def mean_sigmoid(logits: Array) -> Array:
  """Returns logits [...] whose sigmoid is the mean of the members' [E, ...]."""
  if len(logits) == 1:
    return logits[0]
  yes, no = jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)
  return _log_mean_exp(yes) - _log_mean_exp(no)


def mean(scores: Array) -> Array:
  """Returns the mean [...] of the members' scores [E, ...]."""
  return jnp.mean(scores, axis=0)


def side_by_side(vectors: Array) -> Array:
  """Returns [..., E X]: the members' vectors [E, ..., X], concatenated."""
  moved = jnp.moveaxis(vectors, 0, -2)
  return moved.reshape(*moved.shape[:-2], -1)


def _log_mean_exp(x: Array) -> Array:
  return jax.nn.logsumexp(x, axis=0) - jnp.log(len(x))
