"""Answers in a text: scores of their two ends, and the best spans by them."""

import jax.numpy as jnp
from flax import linen as nn
from jax import lax

from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.heads import head_input, head_stddevs
from maskedlm.modeling.layers import Dense

MASKED = -1e9  # The score of a forbidden position; finite, to avoid NaN.


class AnswerHead(nn.Module):
  """A dense layer with two scores per token: first and last of the answer."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x, *, train: bool):
    """Maps x [B, L, D] to float32 [B, L, 2]."""
    del train  # There is no dropout.
    cfg = self.cfg
    B, L, D = x.shape
    _, stddev = head_stddevs(cfg)
    dense = Dense((D,), (2,), stddev, cfg.dtype, name="dense")
    x = dense(head_input(cfg, x.reshape(B * L, D)))
    return x.astype(jnp.float32).reshape(B, L, 2)


def best_spans(start, end, *, context, kept, max_length: int, count: int):
  """Returns the spans with the largest start + end score, out of all spans.

  run_squad.py compares only pairs of a row's 20 best starts and ends, and so
  can miss a good span whose ends are not among them.

  Args:
    start, end: [B, L] scores of each position.
    context: [B, 2], the positions (end exclusive) that an answer lies in.
    kept: [B, 2], those that an answer begins in.
    max_length: the largest number of positions in a span.
    count: the largest number of spans to return, P.

  Returns:
    (scores float32 [B, P], the best first, about MASKED where there are fewer;
    spans int32 [B, P, 2], their first and last position).
  """
  B, L = start.shape
  W = min(max_length, L)
  start = jnp.where(positions_within(kept, L), start, MASKED)
  end = jnp.where(positions_within(context, L), end, MASKED)
  end = jnp.pad(end, ((0, 0), (0, W)), constant_values=MASKED)
  ends = end[:, jnp.arange(L)[:, None] + jnp.arange(W)]  # [B, L, W].
  scores = (start[:, :, None] + ends).reshape(B, L * W)
  scores, places = lax.top_k(scores, min(count, L * W))
  first = places // W
  return scores, jnp.stack([first, first + places % W], axis=-1)


def positions_within(bounds, length: int):
  """Returns a mask [B, L] of the positions within bounds [B, 2]."""
  places = jnp.arange(length)
  return (bounds[:, :1] <= places) & (places < bounds[:, 1:])
