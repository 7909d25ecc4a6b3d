"""Attention by vendors' kernels: cuDNN on NVIDIA GPUs, splash on TPUs.

Neither writes the scores to memory. They have the interface of layer.attend;
dispatch.py refuses beforehand what a kernel does not support. A kernel runs on
one device: over a mesh, splash runs within jax.shard_map, on the rows and heads
that each device holds, while cuDNN's call is partitioned by XLA.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from maskedlm.modeling.attention import banded
from maskedlm.modeling.attention.mask import AttentionMask, to_array

# The axes of the mesh (training/sharding.py) that split rows, and heads.
ROWS, HEADS = ("data", "fsdp"), "tensor"
_LANES = 128  # The kernel's blocks are multiples of it.
# The largest block: smaller ones stall more, larger ones need more memory.
_BLOCK = 512
_SIZES = (  # Splash's names for the blocks of the forward and backward passes.
  *("block_q", "block_kv", "block_kv_compute"),
  *("block_q_dkv", "block_kv_dkv", "block_kv_dkv_compute"),
  *("block_q_dq", "block_kv_dq"),
)
_PADDING = -1  # Segment of the columns that pad the last block; no token's.


def cudnn(query, key, value, mask: AttentionMask):
  """Returns attention [B, L, H, K] by cuDNN; arguments as in layer.attend.

  Rows of one text are given to the kernel as lengths, and their result is 0 on
  padding. Packed rows need a mask [B, 1, L, S], which all layers and heads
  share. A row that is not one text though mask.one_text says so has NaN, which
  stops training. In long rows, a window is a band of blocks.
  """
  mixed = mask.causal_rows is not None
  if not mask.window or mixed or not banded.saves(mask):
    return _cudnn(query, key, value, mask)
  near = functools.partial(banded.attend, function=attend_cudnn, mask=mask)
  if mask.is_local is None:
    return near(query, key, value)
  everywhere = mask._replace(window=0, is_local=None)
  far = functools.partial(_cudnn, mask=everywhere)
  return jax.lax.cond(mask.is_local, near, far, query, key, value)


def _cudnn(query, key, value, mask: AttentionMask):
  mixed = mask.causal_rows is not None
  if mask.window or mixed or not mask.one_text:
    return attend_cudnn(query, key, value, mask=to_array(mask))
  segments = mask.segment_ids
  L = segments.shape[1]
  real = jnp.sum(segments > 0, axis=1, dtype=jnp.int32)
  length = jnp.where(real == 0, L, real)  # A row of padding attends to itself.
  y = attend_cudnn(
    *(query, key, value),
    is_causal=mask.causal,
    query_seq_lengths=length,
    key_value_seq_lengths=length,
  )
  return jnp.where(is_one_text(segments)[:, None, None, None], y, jnp.nan)


def attend_cudnn(query, key, value, **options):
  return jax.nn.dot_product_attention(
    query, key, value, implementation="cudnn", **options
  )


def is_one_text(segment_ids):
  """Returns [B] bool for segment_ids [B, L]: one segment, then padding."""
  real = jnp.sum(segment_ids > 0, axis=1, keepdims=True)
  column = jnp.arange(segment_ids.shape[1])
  text = jnp.where(column < real, segment_ids[:, :1], 0)
  return (segment_ids == text).all(axis=1)


def splash(query, key, value, mask: AttentionMask, *, interpret: bool = False):
  """Returns attention [B, L, H, K] by Pallas's splash kernel.

  It skips blocks that the causal mask or a window excludes; the mask is without
  alibi. With `interpret`, it runs in jax.numpy, slowly, on any platform.
  """
  # Imported here as it takes a second, and may be absent on other platforms.
  from jax.experimental.pallas.ops.tpu import splash_attention as library

  L = query.shape[1]
  extra = -L % _LANES
  block = math.gcd(L + extra, _BLOCK)
  sizes: dict[str, Any] = dict.fromkeys(_SIZES, block)

  def splash_mask(window: int):
    shape = (L + extra, L + extra)
    if window:
      sides = window // 2, 0 if mask.causal else window // 2
      return library.LocalMask(shape, sides, offset=0)
    return (library.CausalMask if mask.causal else library.FullMask)(shape)

  def attend(window: int, query, key, value, segments):
    """Returns attention for q, k, v [B, H, L, K] and segments [B, L]."""
    kernel = library.make_splash_mha(
      mask=library.MultiHeadMask([splash_mask(window)] * query.shape[1]),
      block_sizes=library.BlockSizes(**sizes),
      head_shards=1,
      q_seq_shards=1,
      interpret=interpret,
    )

    def row(query, key, value, segments):
      ids = library.SegmentIds(segments, segments)
      return kernel(query, key, value, segment_ids=ids)

    return jax.vmap(row)(query, key, value, segments)

  def on_device(query, key, value, segments, is_local):
    query = query * query.shape[-1] ** -0.5  # The kernel does not scale.
    # [B, L, H, K] -> [B, H, L + extra, K].
    widths = ((0, 0), (0, 0), (0, extra), (0, 0))
    args = [jnp.pad(x.swapaxes(1, 2), widths) for x in (query, key, value)]
    args.append(
      jnp.pad(segments, ((0, 0), (0, extra)), constant_values=_PADDING)
    )
    near, far = (functools.partial(attend, w) for w in (mask.window, 0))
    if mask.window and mask.is_local is not None:
      y = jax.lax.cond(is_local, near, far, *args)
    else:
      y = near(*args)
    return y[:, :, :L].swapaxes(1, 2)

  return _over_mesh(on_device, query, key, value, mask)


def _over_mesh(on_device, query, key, value, mask: AttentionMask):
  """Returns on_device(query, key, value, segment_ids, is_local).

  With a mesh (jax.set_mesh), each device computes the rows and heads it holds.
  """
  is_local = jnp.asarray(True if mask.is_local is None else mask.is_local)
  args = query, key, value, mask.segment_ids, is_local
  mesh = jax.sharding.get_abstract_mesh()
  if mesh.empty:
    return on_device(*args)
  # Within jax.shard_map over an axis, rows are those of a device already.
  axes = tuple(axis for axis in ROWS if axis not in mesh.manual_axes)
  split, whole = PartitionSpec(axes, None, HEADS, None), PartitionSpec()
  return jax.shard_map(
    on_device,
    in_specs=(split, split, split, PartitionSpec(axes), whole),
    out_specs=split,
    axis_names={*axes, HEADS},
    check_vma=False,  # Pallas calls do not declare the axes they vary over.
  )(*args)
