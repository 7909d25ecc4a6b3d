"""Masks that follow what the model finds hard (AMLM, arXiv:2510.20475).

Each type of token has a weight, with which single tokens are drawn
(tokens.choose_tokens). Every `every` steps the weights move towards the share
of wrong predictions since the last time; the steps carry them (Task.carried).
The numbers are those of serdardoesml/babylm25, train_mask.py.
"""

from typing import Any

import jax
import jax.numpy as jnp

from maskedlm.core.task import Batch, Carried
from maskedlm.modeling.masking.masking import Masking

_KEPT = 0.2  # Of the old weights, in an update.
_LEAST = 0.005  # Of mask_rate / weight, so that no type is left out.


def carry(
  masks: Masking, vocab_size: int, *, every: int, mask_rate: float
) -> Carried:
  """Returns Task.carried of a masked objective.

  Args:
    masks: its masks, with choose="tokens".
    vocab_size: V.
    every: steps between two updates.
    mask_rate: share of the tokens that are masked.
  """

  def init() -> dict[str, Any]:
    none = jnp.zeros(vocab_size)
    return {"weights": none + 1, "right": none, "wrong": none}

  def update(carried, observed, step):
    counts = {name: carried[name] + observed[name] for name in observed}
    renewed = init() | {
      "weights": new_weights(carried["weights"], **counts, mask_rate=mask_rate)
    }
    is_due = step % every == 0
    return jax.tree.map(
      lambda new, old: jnp.where(is_due, new, old),
      renewed,
      {**carried, **counts},
    )

  return Carried(
    init,
    lambda carried, batch, key: masks.corrupt(batch, key, carried["weights"]),
    update,
  )


def new_weights(weights, right, wrong, *, mask_rate: float):
  """Returns the weights [V] after an update; their mean is 1.

  Args:
    weights: those before it.
    right, wrong: how often tokens of each type were predicted so; one that was
      not predicted counts as half right.
    mask_rate: share of the tokens that are masked.

  >>> weights = new_weights(
  ...   jnp.ones(3), jnp.float32([7, 0, 0]), jnp.float32([0, 7, 0]), mask_rate=1
  ... )
  >>> [round(x, 3) for x in (weights / weights[2]).tolist()]
  [0.417, 1.583, 1.0]
  """
  is_wrong = 1 - (right + 0.5) / (right + wrong + 1)
  weights = _KEPT * weights + (1 - _KEPT) * is_wrong
  weights = jnp.maximum(weights, _LEAST / mask_rate)
  return weights / jnp.mean(weights)


def observe(correct, batch: Batch, vocab_size: int) -> dict[str, Any]:
  """Returns how many tokens of each type [V] were predicted right and wrong.

  Args:
    correct: [B, P] bool.
    batch: masked_labels and masked_weights, [B, P].
    vocab_size: V.
  """
  labels, weights = batch["masked_labels"], batch["masked_weights"]
  none = jnp.zeros(vocab_size)
  right = none.at[labels].add(weights * correct)
  return {"right": right, "wrong": none.at[labels].add(weights) - right}
