"""Attention on NVIDIA GPUs by a kernel of ours: Triton, by Pallas.

Flash attention (arXiv:2205.14135, 2307.08691): no array of scores is written,
backward makes them again, and only those keys are visited that a block of
queries sees something of. What kernels of others don't do and BERT needs: it
drops weights. Which ones, is hashed anew from their places; they are those that
random_words(key, [B, H, L, S]) drops.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import pallas as pl
from jax.sharding import PartitionSpec

from maskedlm.modeling import dropout_bits
from maskedlm.modeling.attention.mask import Sight, ranges
from maskedlm.modeling.attention.vendor_kernels import (
  HEADS,
  ROWS,
  locality,
  over_mesh,
  pad_segments,
)
from maskedlm.modeling.positions import alibi_slopes

_UNSEEN = -1e9  # As a score: its exponential is 0.
_LOG2_E = math.log2(math.e)  # The GPU has 2^x, not e^x.


class Tile(NamedTuple):
  """The size of a program: a block of queries, and in turn steps of keys.

  Or a block of keys, and in turn steps of queries.
  """

  block: int  # A multiple of step; powers of two, and 16 at least on a GPU.
  step: int
  warps: int = 8


def tiles_of(head_size: int) -> tuple[Tile, Tile]:
  """(forward, backward): as much as fits the registers, 255 of a thread.

  Forward, two such programs at a time on a multiprocessor, so that one computes
  while the other one loads.
  """
  return Tile(128, 32), Tile(128, 64 if head_size <= 64 else 32)


class Drop(NamedTuple):
  """Which weights are dropped."""

  seeds: jax.Array  # [3] uint32, of random_words.
  count: int  # Of 2^32: words below it drop theirs.


class _Fixed(NamedTuple):
  """What is known when it is compiled."""

  forward: Tile
  backward: Tile
  length: int  # L, before it was filled up to whole blocks.
  num_heads: int  # H, of all devices.
  alibi: bool
  dropped: int  # Of 2^32.
  interpret: bool


class _Seen(NamedTuple):
  """Who sees whom, and what is dropped."""

  first: Any  # [B, L] int32: the columns that a query sees
  stop: Any  # begin and end there.
  slopes: Any  # [H] float32, of ALiBi.
  numbers: Any  # [5] uint32: the seeds, and the first row and head here.


class _Given(NamedTuple):
  """What the kernels read besides the vectors."""

  first: Any  # As those of _Seen.
  stop: Any
  slopes: Any
  keys: Any  # [B, n, 2] int32: steps of keys that each block of queries visits,
  queries: Any  # and of queries that each block of keys visits.
  start: Any  # [B, H, L] uint32, of the words that drop a query's weights;
  stride: Any  # how far a row's are apart. [1, 1, 1] where nothing is dropped.


def attend(
  qkv,
  sight: Sight,
  drop: Drop | None = None,
  *,
  tiles: tuple[Tile, Tile] | None = None,
  interpret: bool = False,
):
  """Queries, keys and values [B, L, 3, H, K] -> [B, L, H, K].

  Args:
    qkv: in one array, of which a GPU needs no part copied. K: powers of two.
    sight: who sees whom.
    drop: which weights are dropped; None: none.
    tiles: (forward, backward); None: tiles_of the heads.
    interpret: compute it in jax.numpy instead, on any platform, slowly.
  """
  drop = drop or Drop(jnp.zeros(3, jnp.uint32), 0)
  _, L, _, H, K = qkv.shape
  least = 2 ** math.ceil(math.log2(L))
  tiles = [
    tile._replace(block=min(tile.block, max(tile.step, least)))
    for tile in tiles or tiles_of(K)
  ]
  fixed = _Fixed(*tiles, L, H, sight.alibi, drop.count, interpret)
  slopes = jnp.asarray(alibi_slopes(H) if sight.alibi else [0.0] * H)

  def on_device(qkv, segments, slopes, is_local, seeds):
    one = jax.sharding.get_abstract_mesh().empty
    row, head = (
      0 if one else jax.lax.axis_index(axis) * qkv.shape[i]
      for i, axis in ((0, ROWS), (3, HEADS))
    )
    numbers = jnp.stack([*seeds, jnp.uint32(row), jnp.uint32(head)])
    local = sight._replace(segment_ids=segments, is_local=is_local)
    return _on_device(fixed, qkv, local, slopes, numbers)

  P = PartitionSpec
  specs = (P(ROWS, None, None, HEADS), P(ROWS), P(HEADS), P(), P())
  args = qkv, sight.segment_ids, slopes, locality(sight), drop.seeds
  return over_mesh(on_device, specs, P(ROWS, None, HEADS), *args)


def _on_device(fixed: _Fixed, qkv, sight: Sight, slopes, numbers):
  extra = -fixed.length % max(fixed.forward.block, fixed.backward.block)
  segments = pad_segments(sight.segment_ids, extra)
  first, stop = ranges(sight._replace(segment_ids=segments))
  qkv = jnp.pad(qkv, ((0, 0), (0, extra), *[(0, 0)] * 3))
  seen = _Seen(first, stop, slopes, numbers)
  return _attend(fixed, qkv, seen)[:, : fixed.length]


def visits(first, stop, block: int, step: int):
  """(keys, queries) [B, n, 2] int32: the first step visited, and the last + 1.

  By each block of queries, of the keys; by each block of keys, of the queries.
  first, stop: [B, L], the columns that each query sees.
  """
  B, L = first.shape
  low, high = first.reshape(B, -1, step), stop.reshape(B, -1, step)
  low, high = low.min(axis=2), high.max(axis=2)  # Of each step of queries.
  begins = np.arange(0, L, block)
  meet = (low[..., None] < begins + block) & (high[..., None] > begins)
  queries = [meet.argmax(axis=1), L // step - meet[:, ::-1].argmax(axis=1)]
  low = low.reshape(B, L // block, -1).min(axis=2)
  high = high.reshape(B, L // block, -1).max(axis=2)
  keys = [low // step, (high + step - 1) // step]
  return jnp.stack(keys, axis=2), jnp.stack(queries, axis=2)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend(fixed: _Fixed, qkv, seen: _Seen):
  """[B, L, 3, H, K] -> [B, L, H, K], in whole blocks."""
  return _forward(fixed, qkv, seen)[0]


def _forward(fixed: _Fixed, qkv, seen: _Seen):
  B, L, _, H, K = qkv.shape
  y = jax.ShapeDtypeStruct((B, L, H, K), qkv.dtype)
  log_sum = jax.ShapeDtypeStruct((B, H, L), jnp.float32)
  out = [y, log_sum]
  made = _call(_forward_kernel, fixed, fixed.forward, out, seen, qkv)
  # Backward needs all three, and need not make them again (encoder.REMAT).
  qkv, y, log_sum = (checkpoint_name(x, "attended") for x in (qkv, *made))
  return y, (qkv, seen, y, log_sum)


def _backward(fixed: _Fixed, kept, dy):
  qkv, seen, y, log_sum = kept
  # What the softmax takes from each score's gradient: that of its own sum.
  mean = jnp.sum(dy.astype(jnp.float32) * y.astype(jnp.float32), axis=3)
  args = qkv, dy, log_sum, mean.swapaxes(1, 2)
  out = [jax.ShapeDtypeStruct(qkv.shape, qkv.dtype)]
  made = _call(_backward_kernel, fixed, fixed.backward, out, seen, *args)
  return *made, None


_attend.defvjp(_forward, _backward)


def _call(kernel, fixed: _Fixed, tile: Tile, out_shape, seen: _Seen, *arrays):
  """A program for each block of each head of each row."""
  from jax.experimental.pallas import triton

  B, L, _, H, _ = arrays[0].shape
  n = L // tile.block
  given = _Given(
    *(seen.first, seen.stop, seen.slopes),
    *visits(seen.first, seen.stop, tile.block, tile.step),
    *(_words(fixed, seen.numbers, (B, H, L)) if fixed.dropped else _NO_WORDS),
  )
  # Loads ahead of their use take registers, and pay in long loops only.
  stages = 1 if n == 1 else 2
  return pl.pallas_call(
    functools.partial(kernel, fixed, tile),
    grid=(n, H, B),
    out_shape=out_shape,
    compiler_params=triton.CompilerParams(
      num_warps=tile.warps, num_stages=stages
    ),
    interpret=fixed.interpret,
    name=kernel.__name__.strip("_"),
  )(*arrays, *given)


_NO_WORDS = np.zeros((2, 1, 1, 1), np.uint32)


def _words(fixed: _Fixed, numbers, shape):
  """(start, stride) of the words of each query, of shape [B, H, L]."""
  *seeds, row, head = (numbers[i] for i in range(5))
  b, h, query = (
    jax.lax.broadcasted_iota(jnp.uint32, shape, axis) for axis in range(3)
  )
  row = (row + b) * np.uint32(fixed.num_heads) + head + h
  return dropout_bits.of_row(row * np.uint32(fixed.length) + query, *seeds)


# The kernels. References are to whole arrays, of which a program has the part
# of head h of row b. A tile is [queries, keys], or [keys, queries] where that
# saves turning it: what belongs to its sides has the shapes [n, 1] and [1, n].


class _Queries(NamedTuple):
  """What is known of queries, along a side of a tile."""

  column: Any  # Where they stand.
  first: Any  # The columns that they see
  stop: Any  # begin and end there.
  start: Any = None  # Of the words that drop their weights;
  stride: Any = None  # how far a row's are apart.
  log_sum: Any = None  # Log2 of what the softmax divides by; in backward only,
  mean: Any = None  # as the mean of the weights' gradients.


def _forward_kernel(fixed: _Fixed, tile: Tile, qkv, *refs):
  *given, y_ref, log_sum_ref = refs
  given = _Given(*given)
  n, h, b = (pl.program_id(axis) for axis in range(3))
  rows, column = _part(n, tile.block)
  q = qkv[b, rows, 0, h, :]
  queries = _queries(fixed, given, b, h, n, tile.block, axis=1)

  def add(j, carry):
    top, total, y = carry
    cols, keys = _part(j, tile.step)
    k, v = qkv[b, cols, 1, h, :], qkv[b, cols, 2, h, :]
    scores = _scores(fixed, given, h, queries, keys[None, :], q, k)
    higher = jnp.maximum(top, scores.max(axis=1))
    weights = jnp.exp2(scores - higher[:, None])
    fade = jnp.exp2(top - higher)
    total = total * fade + weights.sum(axis=1)
    left = _kept(fixed, queries, keys[None, :])(weights).astype(v.dtype)
    return higher, total, y * fade[:, None] + _dot(left, v, 1, 0)

  top = jnp.full(column.shape, _UNSEEN, jnp.float32)
  carry = top, jnp.zeros_like(top), jnp.zeros(q.shape, jnp.float32)
  top, total, y = _visit(given.keys, b, n, add, carry)
  y *= dropout_bits.scale(fixed.dropped) / total[:, None]
  y_ref[b, rows, h, :] = y.astype(y_ref.dtype)
  log_sum_ref[b, h, rows] = top + jnp.log2(total)


def _backward_kernel(fixed: _Fixed, tile: Tile, qkv, dy, log_sum, mean, *refs):
  """The gradients of a block's keys and values, and of its queries."""
  *given, out = refs
  given = _Given(*given)
  n, h, b = (pl.program_id(axis) for axis in range(3))
  rows, column = _part(n, tile.block)
  scale, left_scale = qkv.shape[4] ** -0.5, dropout_bits.scale(fixed.dropped)
  one_block = given.keys.shape[1] == 1

  def between(queries, keys, left, right):
    """The weights that are left, not scaled, and the scores' gradients."""
    scores = _scores(fixed, given, h, queries, keys, left[0], right[0])
    weights = jnp.exp2(scores - queries.log_sum)
    kept = _kept(fixed, queries, keys)
    change = kept(_dot(left[1], right[1], 1, 1) * left_scale)
    change = weights * (change - queries.mean)
    return kept(weights).astype(out.dtype), change.astype(out.dtype)

  def known(i, size, axis):
    part, _ = _part(i, size)
    found = _queries(fixed, given, b, h, i, size, axis=axis)
    sums = log_sum[b, h, part], mean[b, h, part]
    sums = [jnp.expand_dims(x, axis) for x in sums]
    return found._replace(log_sum=sums[0], mean=sums[1])

  def of_queries(part):
    return qkv[b, part, 0, h, :], dy[b, part, h, :]

  def of_keys(part):
    return qkv[b, part, 1, h, :], qkv[b, part, 2, h, :]

  def store(part, which, x):
    out[b, part, which, h, :] = x.astype(out.dtype)

  k, v = of_keys(rows)

  def add_queries(i, carry):
    dk, dv = carry
    part, _ = _part(i, tile.step)
    q, g = of_queries(part)
    queries = known(i, tile.step, 0)
    weights, change = between(queries, column[:, None], (k, v), (q, g))
    if one_block:  # There are no other keys.
      store(part, 0, _dot(change, k, 0, 0) * scale)
    return dk + _dot(change, q, 1, 0), dv + _dot(weights, g, 1, 0)

  zero = jnp.zeros(k.shape, jnp.float32)
  dk, dv = _visit(given.queries, b, n, add_queries, (zero, zero))
  store(rows, 1, dk * scale)
  store(rows, 2, dv * left_scale)
  if one_block:
    return

  q, g = of_queries(rows)
  queries = known(n, tile.block, 1)

  def add_keys(j, dq):
    part, keys = _part(j, tile.step)
    k, v = of_keys(part)
    _, change = between(queries, keys[None, :], (q, g), (k, v))
    return dq + _dot(change, k, 1, 0)

  store(rows, 0, _visit(given.keys, b, n, add_keys, zero) * scale)


def _scores(fixed: _Fixed, given: _Given, h, queries, keys, left, right):
  """left . right, scaled for powers of 2; what is not seen is _UNSEEN."""
  scores = _dot(left, right, 1, 1) * (left.shape[1] ** -0.5 * _LOG2_E)
  if fixed.alibi:
    distance = jnp.abs(queries.column - keys).astype(jnp.float32)
    scores -= given.slopes[h] * _LOG2_E * distance
  seen = (keys >= queries.first) & (keys < queries.stop)
  return jnp.where(seen, scores, _UNSEEN)


def _kept(fixed: _Fixed, queries: _Queries, keys):
  """The function that zeroes a tile's entries whose weights are dropped."""
  if not fixed.dropped:
    return lambda x: x
  place = queries.stride * keys.astype(jnp.uint32)
  words = dropout_bits.mix(queries.start + place)
  kept = words >= np.uint32(fixed.dropped)
  return lambda x: jnp.where(kept, x, 0)


def _queries(fixed: _Fixed, given: _Given, b, h, i, size, *, axis) -> _Queries:
  """Of part i of so many queries; [size, 1] (axis 1) or [1, size] (axis 0)."""
  part, column = _part(i, size)
  found = column, given.first[b, part], given.stop[b, part]
  if fixed.dropped:
    found += given.start[b, h, part], given.stride[b, h, part]
  return _Queries(*(jnp.expand_dims(x, axis) for x in found))


def _visit(steps, b, n, body, carry):
  """body(i, carry) for each step that block n of row b visits."""
  return jax.lax.fori_loop(steps[b, n, 0], steps[b, n, 1], body, carry)


def _part(i, size: int):
  """(slice, columns [size]) of part i."""
  return pl.ds(i * size, size), i * size + jnp.arange(size)


def _dot(a, b, axis_a: int, axis_b: int):
  """A product of two blocks over one axis of each, summed in float32."""
  return jax.lax.dot_general(
    a,
    b,
    (((axis_a,), (axis_b,)), ((), ())),
    precision=jax.lax.Precision.HIGHEST,
    preferred_element_type=jnp.float32,
  )
