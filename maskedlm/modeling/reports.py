"""Collects the scores that a loss computes, to compare them with a teacher's.

The losses of losses.py and masked_lm.py report the scores that they weigh, and
the encoder the vectors of its layers; only `hear` keeps them. So an objective
or a task has no line for its teacher (training/distil.py). What is computed
within a loop, such as jax.lax.scan, is not heard: outside it doesn't exist.
"""

import contextvars
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from flax.core import tracers

from maskedlm.modeling.arrays import Array


class Scores(NamedTuple):
  """The scores at P places of B rows."""

  inputs: Array  # [B, P, ...].
  weights: Array  # [B, P], the loss's.
  # The inputs of some places -> logits [B, p, C]; numbers if C is 1.
  logits: Callable[[Array], Any]


class Heard(NamedTuple):
  """What was reported, in order."""

  trace: Any  # Of the listener.
  scores: list[Scores]
  # The vectors of N + 1 layers [N + 1, R, S, D], and which are of tokens.
  layers: list[tuple[Array, Array]]


_HEARD = contextvars.ContextVar[Heard | None]("heard", default=None)


def hear(function: Callable, *args: Any) -> tuple[Any, Heard]:
  """Returns function(*args), and what it reported."""
  heard = Heard(tracers.current_trace(), [], [])
  token = _HEARD.set(heard)
  try:
    return function(*args), heard
  finally:
    _HEARD.reset(token)


def listener() -> Heard | None:
  """Returns where to report to; None if nobody listens here."""
  heard = _HEARD.get()
  return heard if heard and heard.trace == tracers.current_trace() else None


def report(logits: Array, weights: Array) -> None:
  """Reports logits [B, *P, C] with the weights [B, *P] of a loss."""
  B, *_, C = logits.shape
  report_places(logits.reshape(B, -1, C), weights.reshape(B, -1), lambda x: x)


def report_places(inputs: Array, weights: Array, logits: Callable) -> None:
  """Reports Scores."""
  if heard := listener():
    heard.scores.append(Scores(inputs, weights, logits))


def report_binary(logits: Array, weights: Array) -> None:
  """Reports logits [B, *P] of yes against no, with the loss's weights."""
  report(jnp.stack([logits, jnp.zeros_like(logits)], axis=-1), weights)
