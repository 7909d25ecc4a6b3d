"""Attention in blocks: memory linear in the length, on any platform.

The softmax is built up block by block of keys (arXiv:2112.05682), and backward
computes the scores again from each row's log-sum (FlashAttention,
arXiv:2205.14135, algorithm 4). Blocks of keys that no query of a block sees
are not visited: beyond the window, right of it if causal, of other segments.
Plain jax.numpy, so that XLA splits it over devices as it does the rest.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.modeling.attention.mask import AttentionMask
from maskedlm.modeling.positions import alibi_slopes

BLOCK = 128  # Positions: the fastest on CPU, of 128, 256, 512 and 1024.
_UNSEEN = -1e9  # As a score: its exponential is 0.
_PADDING = -1  # The segment of what fills the last block; no token's.


def attend(query, key, value, mask: AttentionMask, *, block: int = BLOCK):
  """query, key, value [B, L, H, K] -> [B, L, H, K]."""
  L = query.shape[1]
  block = min(block, L)
  extra = -L % block

  def blocks(x):  # [B, L, H, K] -> [B, H, L, K], L a multiple of the block.
    return jnp.pad(x.swapaxes(1, 2), ((0, 0), (0, 0), (0, extra), (0, 0)))

  segments = jnp.pad(
    jnp.asarray(mask.segment_ids, jnp.int32),
    ((0, 0), (0, extra)),
    constant_values=_PADDING,
  )
  reach = jnp.int32(mask.window // 2 if mask.window else L)
  if mask.window and mask.is_local is not None:
    reach = jnp.where(mask.is_local, reach, L)
  fixed = _Fixed(block, mask.causal, mask.alibi)
  y = _attend(fixed, *map(blocks, (query, key, value)), segments, reach)
  return y[:, :, :L].swapaxes(1, 2)


class _Fixed(NamedTuple):
  """What is known when it is compiled."""

  block: int
  causal: bool
  alibi: bool


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend(fixed, query, key, value, segments, reach):
  """[B, H, L, K] x 3, [B, L], () -> [B, H, L, K]."""
  return _forward(fixed, query, key, value, segments, reach)[0]


def _forward(fixed, query, key, value, segments, reach):
  num = query.shape[2] // fixed.block
  first, stop = visited(fixed, segments, reach)

  def row(i):  # One block of queries.
    q = _cut(fixed, query, i)

    def add(j, carry):
      top, total, y = carry
      scores = _scores(fixed, q, _cut(fixed, key, j), segments, reach, i, j)
      higher = jnp.maximum(top, scores.max(axis=-1))
      weights = jnp.exp(scores - higher[..., None])
      fade = jnp.exp(top - higher)
      v = _cut(fixed, value, j)
      y = y * fade[..., None] + _dot("BHLS,BHSK->BHLK", weights, v)
      return higher, total * fade + weights.sum(axis=-1), y

    zero = jnp.zeros(q.shape, jnp.float32)
    top, total, y = jax.lax.fori_loop(
      first[i], stop[i], add, (zero[..., 0] + _UNSEEN, zero[..., 0], zero)
    )
    return (y / total[..., None]).astype(query.dtype), top + jnp.log(total)

  y, log_sum = jax.lax.map(row, jnp.arange(num))  # [num, B, H, block, ...]
  y, log_sum = (jnp.moveaxis(x, 0, 2) for x in (y, log_sum))
  y, log_sum = y.reshape(query.shape), log_sum.reshape(query.shape[:3])
  return y, (query, key, value, segments, reach, y, log_sum)


def _backward(fixed, kept, dy):
  query, key, value, segments, reach, y, log_sum = kept
  num = query.shape[2] // fixed.block
  first, stop = visited(fixed, segments, reach)
  scale = query.shape[-1] ** -0.5
  # What the softmax takes from each score's gradient: that of its own sum.
  mean = jnp.sum(dy.astype(jnp.float32) * y.astype(jnp.float32), axis=-1)

  def row(sums, i):  # One block of queries.
    q, g, s, m = (_cut(fixed, x, i) for x in (query, dy, log_sum, mean))

    def add(j, carry):
      dq, dk, dv = carry
      k, v = _cut(fixed, key, j), _cut(fixed, value, j)
      scores = _scores(fixed, q, k, segments, reach, i, j)
      weights = jnp.exp(scores - s[..., None])
      dv = _add(fixed, dv, _dot("BHLS,BHLK->BHSK", weights, g), j)
      change = _dot("BHLK,BHSK->BHLS", g, v) - m[..., None]
      change = weights * change * scale
      dk = _add(fixed, dk, _dot("BHLS,BHLK->BHSK", change, q), j)
      return dq + _dot("BHLS,BHSK->BHLK", change, k), dk, dv

    zero = jnp.zeros(q.shape, jnp.float32)
    dq, *sums = jax.lax.fori_loop(first[i], stop[i], add, (zero, *sums))
    return tuple(sums), dq.astype(query.dtype)

  zero = jnp.zeros(query.shape, jnp.float32)
  (dk, dv), dq = jax.lax.scan(row, (zero, zero), jnp.arange(num))
  dq = jnp.moveaxis(dq, 0, 2).reshape(query.shape)
  return dq, dk.astype(key.dtype), dv.astype(value.dtype), None, None


_attend.defvjp(_forward, _backward)


def visited(fixed, segments, reach):
  """(first, stop) [num]: the blocks of keys that each block of queries visits.

  Whatever the segments are, all that is seen is in there; it is exact where
  their ids ascend, padding (0) last. Rows are computed together, so that what
  one of them sees is visited for all.
  """
  B, L = segments.shape
  num = L // fixed.block
  ids = jnp.where(segments > 0, segments, np.iinfo(np.int32).max)
  ids = ids.reshape(B, num, fixed.block)
  low, high = ids.min(axis=2), ids.max(axis=2)
  meet = low[:, :, None] <= high[:, None, :]
  meet = (meet & meet.swapaxes(1, 2)).any(axis=0)  # [num, num]
  apart = np.abs(np.subtract.outer(np.arange(num), np.arange(num)))
  meet &= (apart - 1) * fixed.block < reach
  if fixed.causal:
    meet &= np.tri(num, dtype=bool)
  return meet.argmax(axis=1), num - meet[:, ::-1].argmax(axis=1)


def _scores(fixed, q, k, segments, reach, i, j):
  """Block i of queries, j of keys, [B, H, block, K] -> [B, H, block, block]."""
  size = fixed.block
  scores = _dot("BHLK,BHSK->BHLS", q, k) * q.shape[-1] ** -0.5
  column = jnp.arange(size)
  distance = (i * size + column)[:, None] - (j * size + column)  # [L, S]
  if fixed.alibi:
    slopes = np.float32(alibi_slopes(q.shape[1]))[:, None, None]
    scores = scores - slopes * jnp.abs(distance)
  seen = jnp.abs(distance) <= reach
  if fixed.causal:
    seen &= distance >= 0
  ours, theirs = (
    jax.lax.dynamic_slice_in_dim(segments, n * size, size, 1) for n in (i, j)
  )
  seen = seen & (ours[:, :, None] == theirs[:, None, :])
  return jnp.where(seen[:, None], scores, _UNSEEN)


def _dot(subscripts, a, b):
  """A contraction in b's type, summed in float32."""
  return jnp.einsum(
    subscripts, a.astype(b.dtype), b, preferred_element_type=jnp.float32
  )


def _cut(fixed, x, i):
  """Block i of x [B, H, L, ...]."""
  return jax.lax.dynamic_slice_in_dim(x, i * fixed.block, fixed.block, 2)


def _add(fixed, x, y, j):
  """x [B, H, L, K] with y added to block j."""
  y = y + _cut(fixed, x, j)
  return jax.lax.dynamic_update_slice_in_dim(x, y, j * fixed.block, 2)
