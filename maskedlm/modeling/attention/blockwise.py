"""Attention in blocks: memory linear in the length, on any platform.

The softmax is accumulated over blocks of keys (arXiv:2112.05682), and the
backward pass recomputes the scores from each row's log-sum (FlashAttention,
arXiv:2205.14135, algorithm 4). Blocks of keys that no query of a block attends
to are skipped: those beyond the window, right of a causal query, or of other
segments. It is plain jax.numpy, which XLA splits over devices like everything
else.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.modeling.attention.mask import AttentionMask
from maskedlm.modeling.positions import alibi_slopes

BLOCK = 128  # Positions; the fastest of 128, 256, 512 and 1024 on CPU.
_MASKED = -1e9  # A score whose exponential is 0.
_PADDING = -1  # Segment of the columns that pad the last block; no token's.


def attend(query, key, value, mask: AttentionMask, *, block: int = BLOCK):
  """Returns attention [B, L, H, K]; arguments as in layer.attend."""
  fixed, arrays, segments, reach = _blocks((query, key, value), mask, block)
  y = _attend(fixed, *arrays, segments, reach)
  return y[:, :, : query.shape[1]].swapaxes(1, 2)


def entropy(query, key, mask: AttentionMask, *, block: int = BLOCK):
  """Returns the entropy of each query's weights in nats, [B, H, L] float32.

  With weights p of scores s, it is log(sum(exp(s))) - sum(p * s). There is no
  gradient. Arguments are those of `attend`.
  """
  fixed, arrays, segments, reach = _blocks((query, key), mask, block)
  query, key = arrays
  first, stop = visited(fixed, segments, reach)

  def row(i):  # One block of queries.
    q = _cut(fixed, query, i)

    def add(j, carry):
      top, total, moment = carry  # moment: sum(exp(s - top) * (s - top)).
      scores = _scores(fixed, q, _cut(fixed, key, j), segments, reach, i, j)
      higher = jnp.maximum(top, scores.max(axis=-1))
      below = scores - higher[..., None]
      weights, fade = jnp.exp(below), jnp.exp(top - higher)
      moment = fade * (moment + total * (top - higher))
      moment += jnp.sum(weights * below, axis=-1)
      return higher, total * fade + weights.sum(axis=-1), moment

    zero = jnp.zeros(q.shape[:-1], jnp.float32)
    _, total, moment = jax.lax.fori_loop(
      first[i], stop[i], add, (zero + _MASKED, zero, zero)
    )
    return jnp.log(total) - moment / total

  entropies = jax.lax.map(row, jnp.arange(query.shape[2] // fixed.block))
  entropies = jnp.moveaxis(entropies, 0, 2).reshape(query.shape[:3])
  return entropies[:, :, : mask.segment_ids.shape[1]]


def _blocks(arrays, mask: AttentionMask, block: int):
  """Returns (fixed, arrays [B, H, L, K], segments [B, L], reach).

  The arrays [B, L, H, K] are padded to a multiple of the block. The reach is
  how far a token attends, [], and mask.causal_rows.
  """
  L = arrays[0].shape[1]
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
  causal = mask.causal and mask.causal_rows is None
  fixed = _Fixed(block, causal, mask.alibi)
  return fixed, [*map(blocks, arrays)], segments, (reach, mask.causal_rows)


class _Fixed(NamedTuple):
  """The arguments that are static under jit."""

  block: int
  causal: bool  # All rows are.
  alibi: bool


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend(fixed, query, key, value, segments, reach):
  """Returns attention for q, k, v [B, H, L, K]; see _blocks for the rest."""
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
      first[i], stop[i], add, (zero[..., 0] + _MASKED, zero[..., 0], zero)
    )
    return (y / total[..., None]).astype(query.dtype), top + jnp.log(total)

  y, log_sum = jax.lax.map(row, jnp.arange(num))  # [num, B, H, block, ...]
  y, log_sum = (jnp.moveaxis(x, 0, 2) for x in (y, log_sum))
  y, log_sum = y.reshape(query.shape), log_sum.reshape(query.shape[:3])
  return y, (query, key, value, segments, reach, y, log_sum)


def _backward(fixed, saved, dy):
  query, key, value, segments, reach, y, log_sum = saved
  num = query.shape[2] // fixed.block
  first, stop = visited(fixed, segments, reach)
  scale = query.shape[-1] ** -0.5
  # The softmax subtracts this from each gradient of its weights.
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
  """Returns (first, stop) [num], the range of keys of each block of queries.

  The ranges, counted in blocks, contain all keys that are attended to, whatever
  the segments are. They are tight if segment ids ascend, with padding (0) last.
  All rows of the batch share them.
  """
  B, L = segments.shape
  num = L // fixed.block
  ids = jnp.where(segments > 0, segments, np.iinfo(np.int32).max)
  ids = ids.reshape(B, num, fixed.block)
  low, high = ids.min(axis=2), ids.max(axis=2)
  meet = low[:, :, None] <= high[:, None, :]
  meet = (meet & meet.swapaxes(1, 2)).any(axis=0)  # [num, num]
  apart = np.abs(np.subtract.outer(np.arange(num), np.arange(num)))
  meet &= (apart - 1) * fixed.block < reach[0]
  if fixed.causal:
    meet &= np.tri(num, dtype=bool)
  return meet.argmax(axis=1), num - meet[:, ::-1].argmax(axis=1)


def _scores(fixed, q, k, segments, reach, i, j):
  """Returns masked scores [B, H, block, block] of query and key blocks i, j."""
  size = fixed.block
  scores = _dot("BHLK,BHSK->BHLS", q, k) * q.shape[-1] ** -0.5
  column = jnp.arange(size)
  distance = (i * size + column)[:, None] - (j * size + column)  # [L, S]
  if fixed.alibi:
    slopes = np.float32(alibi_slopes(q.shape[1]))[:, None, None]
    scores = scores - slopes * jnp.abs(distance)
  allowed = jnp.abs(distance) <= reach[0]
  if fixed.causal:
    allowed &= distance >= 0
  if reach[1] is not None:
    allowed = allowed & ((distance >= 0) | ~reach[1][:, None, None])
  query_segments, key_segments = (
    jax.lax.dynamic_slice_in_dim(segments, n * size, size, 1) for n in (i, j)
  )
  allowed = allowed & (query_segments[:, :, None] == key_segments[:, None, :])
  return jnp.where(allowed[:, None], scores, _MASKED)


def _dot(subscripts, a, b):
  """Returns the contraction of a and b in b's type, summed in float32."""
  return jnp.einsum(
    subscripts, a.astype(b.dtype), b, preferred_element_type=jnp.float32
  )


def _cut(fixed, x, i):
  """Returns block i of x [B, H, L, ...]."""
  return jax.lax.dynamic_slice_in_dim(x, i * fixed.block, fixed.block, 2)


def _add(fixed, x, y, j):
  """Returns x [B, H, L, K] with y added to block j."""
  y = y + _cut(fixed, x, j)
  return jax.lax.dynamic_update_slice_in_dim(x, y, j * fixed.block, 2)
