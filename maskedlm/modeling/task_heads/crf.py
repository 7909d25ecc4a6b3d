"""Linear-chain conditional random field (Lafferty et al. 2001).

The score of tags t_1 ... t_n is start[t_1] + sum_w emissions[w, t_w] +
sum_w transitions[t_w-1, t_w] + end[t_n]; their probability is the softmax over
all sequences of n tags. Dimensions: B rows, W words (the first lengths[b] of a
row count), T tags. All functions are float32, jit-safe and O(W T^2) per row.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.task import Batch, Params
from maskedlm.modeling.arrays import Array

# The score of a forbidden transition: its exp is 0, but no gradient is NaN.
FORBIDDEN = -1e4
# Adam moves a parameter by about the learning rate a step, whatever the scale
# of its gradient. Unscaled, and with a rate that suits an encoder, the scores
# of transitions would hardly leave 0.
RATE = 100.0


class TransitionScores(NamedTuple):
  """The scores of transitions between tags."""

  start: Array  # [T], or [B, T].
  transitions: Array  # [T, T]: [from, to].
  end: Array  # [T], or [B, T].


def legal_transitions(
  tags: Sequence[str], may_follow: Callable[[str | None, str | None], bool]
) -> TransitionScores:
  """Returns 0 where a step is allowed, else FORBIDDEN, as numpy float32.

  Args:
    tags: by id.
    may_follow: (tag, the next one) -> whether they may be neighbours; None is
      the edge of a sentence.
  """

  def cost(before, after):
    return 0.0 if may_follow(before, after) else FORBIDDEN

  return TransitionScores(
    start=np.array([cost(None, t) for t in tags], np.float32),
    transitions=np.array(
      [[cost(s, t) for t in tags] for s in tags], np.float32
    ),
    end=np.array([cost(t, None) for t in tags], np.float32),
  )


def zero_transitions(num_tags: int) -> TransitionScores:
  """Returns zeros, which allow every transition and prefer none, as numpy."""
  edge = np.zeros(num_tags, np.float32)
  return TransitionScores(edge, np.add.outer(edge, edge), edge)


def row_transitions(
  params: Params, legal: TransitionScores, batch: Batch
) -> TransitionScores:
  """Returns the scores of a batch's rows: RATE * params, plus `legal`.

  Args:
    params: the learnt part, by the names of TransitionScores.
    legal: from legal_transitions or zero_transitions.
    batch: begins and ends [B], 0 where a row is a window that continues there.
  """
  learnt = (RATE * params[name] for name in legal._fields)
  steps = TransitionScores(*(a + b for a, b in zip(learnt, legal, strict=True)))
  # The tag beyond a window's edge is unknown, so no transition is scored.
  begins, ends = batch["begins"][:, None], batch["ends"][:, None]
  return steps._replace(start=steps.start * begins, end=steps.end * ends)


def log_partition(emissions, steps: TransitionScores, lengths):
  """Returns log sum exp(score) over all sequences, by the forward algorithm.

  It is float32 [B], 0 for a row without words, given emissions [B, W, T] and
  the lengths [B] of the rows.
  """

  def forward(alpha, word):
    emission, index = word
    # Sums over the prefixes that end in each tag: [B, from, to] -> [B, to].
    new = jax.nn.logsumexp(alpha[:, :, None] + steps.transitions, axis=1)
    alpha = jnp.where((index < lengths)[:, None], new + emission, alpha)
    return alpha, None

  alpha = emissions[:, 0] + steps.start
  alpha, _ = jax.lax.scan(forward, alpha, _words_after_first(emissions))
  total = jax.nn.logsumexp(alpha + steps.end, axis=-1)
  return jnp.where(lengths > 0, total, 0.0)


def path_score(emissions, steps: TransitionScores, tags, lengths):
  """Returns the score [B] of tags [B, W]; arguments as in log_partition."""
  B, W, T = emissions.shape
  real = jnp.arange(W) < lengths[:, None]
  chosen = jnp.take_along_axis(emissions, tags[..., None], axis=2)[..., 0]
  moved = steps.transitions[tags[:, :-1], tags[:, 1:]]
  last = jnp.take_along_axis(tags, jnp.maximum(lengths - 1, 0)[:, None], axis=1)
  first = jnp.broadcast_to(steps.start, (B, T))
  end = jnp.broadcast_to(steps.end, (B, T))
  score = (
    jnp.sum(chosen * real, axis=1)
    + jnp.sum(moved * real[:, 1:], axis=1)
    + jnp.take_along_axis(first, tags[:, :1], axis=1)[:, 0]
    + jnp.take_along_axis(end, last, axis=1)[:, 0]
  )
  return jnp.where(lengths > 0, score, 0.0)


def viterbi(emissions, steps: TransitionScores, lengths):
  """Returns the best tags [B, W] int32, 0 after the words, and scores [B].

  Arguments are as in log_partition.
  """
  T = emissions.shape[2]

  def forward(best, word):
    emission, index = word
    through = best[:, :, None] + steps.transitions  # [B, from, to].
    is_word = (index < lengths)[:, None]
    new = jnp.max(through, axis=1) + emission
    came_from = jnp.argmax(through, axis=1).astype(jnp.int32)
    # Padding repeats the last word's state.
    came_from = jnp.where(is_word, came_from, jnp.arange(T, dtype=jnp.int32))
    return jnp.where(is_word, new, best), came_from

  best = emissions[:, 0] + steps.start
  best, came_from = jax.lax.scan(forward, best, _words_after_first(emissions))
  best = best + steps.end
  score = jnp.where(lengths > 0, jnp.max(best, axis=-1), 0.0)
  return best_path(best, came_from, lengths), score


def best_path(best, came_from, lengths):
  """Returns the tags [B, W] int32 that lead to the best last ones, 0 beyond.

  Args:
    best: [B, T], the scores of the best paths to each last tag.
    came_from: [W - 1, B, T] int32, the tag before each tag of the next word.
    lengths: [B].
  """
  last = jnp.argmax(best, axis=1).astype(jnp.int32)

  def backward(tag, came_from):
    previous = jnp.take_along_axis(came_from, tag[:, None], axis=1)[:, 0]
    return previous, tag

  first, rest = jax.lax.scan(backward, last, came_from, reverse=True)
  tags = jnp.concatenate([first[None], rest]).T
  return jnp.where(jnp.arange(tags.shape[1]) < lengths[:, None], tags, 0)


def marginals(emissions, steps: TransitionScores, lengths):
  """Returns the probability [B, W, T] of each tag of each word; 0 for padding.

  It is the gradient of the log partition with respect to the emissions.
  """
  return jax.grad(lambda e: jnp.sum(log_partition(e, steps, lengths)))(
    emissions
  )


def _words_after_first(emissions):
  """Returns a scan's inputs: (emissions [W - 1, B, T], indices [W - 1])."""
  W = emissions.shape[1]
  return jnp.moveaxis(emissions[:, 1:], 1, 0), jnp.arange(1, W)
