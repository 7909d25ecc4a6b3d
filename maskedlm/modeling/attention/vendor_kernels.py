"""Attention by kernels of others: cuDNN and tokamax on GPUs, splash on TPUs.

None writes the scores to memory. Each takes what attention.attend does, and
what it can't do attention_choice.py refuses beforehand. A kernel knows of one
device: over a mesh it runs within jax.shard_map, on the rows and the heads
that each device has (cuDNN's is split by XLA, as JAX has told it how).
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from maskedlm.modeling.attention.mask import Sight, ranges

# The axes of the mesh (sharding.py) that split rows, and heads.
ROWS, HEADS = ("data", "fsdp"), "tensor"
_LANES = 128  # The kernels' blocks are multiples of it.
_BLOCK = 512  # At most; smaller ones wait more, larger ones need more memory.
_SIZES = (  # Splash's names for the blocks of forward and backward.
  *("block_q", "block_kv", "block_kv_compute"),
  *("block_q_dkv", "block_kv_dkv", "block_kv_dkv_compute"),
  *("block_q_dq", "block_kv_dq"),
)
_PADDING = -1  # The segment of what fills the last block; no token's.


def cudnn(query, key, value, sight: Sight):
  """Rows of one text, then padding, by cuDNN's flash attention.

  A row that is not so becomes NaN, which training stops at: the kernel is told
  lengths alone, and would compute something else. Its result is 0 on padding.
  """
  segments = sight.segment_ids
  L = segments.shape[1]
  real = jnp.sum(segments > 0, axis=1, dtype=jnp.int32)
  length = jnp.where(real == 0, L, real)  # Padding alone sees itself.
  y = jax.nn.dot_product_attention(
    query,
    key,
    value,
    is_causal=sight.causal,
    query_seq_lengths=length,
    key_value_seq_lengths=length,
    implementation="cudnn",
  )
  return jnp.where(is_one_text(segments)[:, None, None, None], y, jnp.nan)


def is_one_text(segment_ids):
  """[B, L] -> [B] bool: is the row one segment, then padding?"""
  real = jnp.sum(segment_ids > 0, axis=1, keepdims=True)
  column = jnp.arange(segment_ids.shape[1])
  text = jnp.where(column < real, segment_ids[:, :1], 0)
  return (segment_ids == text).all(axis=1)


def splash(query, key, value, sight: Sight, *, interpret: bool = False):
  """Pallas's splash attention, which skips what causal and windows hide.

  interpret: compute it in jax.numpy instead, on any platform, slowly.
  """
  # Imported here: it takes a second, and where it is not used may be absent.
  from jax.experimental.pallas.ops.tpu import splash_attention as library

  L = query.shape[1]
  extra = -L % _LANES
  block = math.gcd(L + extra, _BLOCK)
  sizes = library.BlockSizes(**dict.fromkeys(_SIZES, block))

  def mask(window: int):
    shape = (L + extra, L + extra)
    if window:
      sides = window // 2, 0 if sight.causal else window // 2
      return library.LocalMask(shape, sides, offset=0)
    return (library.CausalMask if sight.causal else library.FullMask)(shape)

  def seen(window: int, query, key, value, segments):
    """[B, H, L, K] x 3, [B, L] -> [B, H, L, K]."""
    kernel = library.make_splash_mha(
      mask=library.MultiHeadMask([mask(window)] * query.shape[1]),
      block_sizes=sizes,
      head_shards=1,
      q_seq_shards=1,
      interpret=interpret,
    )

    def row(query, key, value, segments):
      ids = library.SegmentIds(segments, segments)
      return kernel(query, key, value, segment_ids=ids)

    return jax.vmap(row)(query, key, value, segments)

  def on_device(query, key, value, segments, is_local):
    query = query * query.shape[-1] ** -0.5  # The kernel doesn't.
    args = [_heads_first(x, extra) for x in (query, key, value)]
    args.append(pad_segments(segments, extra))
    near, far = (functools.partial(seen, w) for w in (sight.window, 0))
    if sight.window and sight.is_local is not None:
      y = jax.lax.cond(is_local, near, far, *args)
    else:
      y = near(*args)
    return y[:, :, :L].swapaxes(1, 2)

  return _over_mesh(on_device, query, key, value, sight)


def tokamax(query, key, value, sight: Sight):
  """tokamax's flash attention (Mosaic GPU), which skips what a range hides."""
  from absl import flags

  # Its public function takes no ranges of keys: this is of its inside.
  from tokamax._src.ops.attention import base, pallas_mosaic_gpu

  if not flags.FLAGS.is_parsed():
    flags.FLAGS.mark_as_parsed()  # Or it would read our command line.
  L = query.shape[1]
  extra = -L % _LANES

  def on_device(query, key, value, segments, is_local):
    query, key, value = (
      jnp.pad(x, ((0, 0), (0, extra), (0, 0), (0, 0)))
      for x in (query, key, value)
    )
    segments = pad_segments(segments, extra)
    first, stop = ranges(
      sight._replace(segment_ids=segments, is_local=is_local)
    )
    mask = base.Mask(k_start=first[:, None], k_end=stop[:, None])
    kernel = pallas_mosaic_gpu.PallasMosaicGpuFlashAttention()
    return kernel(query, key, value, mask=mask)[:, :L]

  return _over_mesh(on_device, query, key, value, sight)


def pad_segments(segments, extra: int):
  """[B, L] -> [B, L + extra]; no token sees what is added."""
  return jnp.pad(segments, ((0, 0), (0, extra)), constant_values=_PADDING)


def _heads_first(x, extra: int):
  """[B, L, H, K] -> [B, H, L + extra, K]."""
  return jnp.pad(x.swapaxes(1, 2), ((0, 0), (0, 0), (0, extra), (0, 0)))


def _over_mesh(on_device, query, key, value, sight: Sight):
  """on_device(query, key, value, segment_ids, is_local), on each device."""
  parts, whole = PartitionSpec(ROWS, None, HEADS, None), PartitionSpec()
  specs = (parts, parts, parts, PartitionSpec(ROWS), whole)
  args = query, key, value, sight.segment_ids, locality(sight)
  return over_mesh(on_device, specs, parts, *args)


def locality(sight: Sight):
  """sight.is_local as an array."""
  return jnp.asarray(True if sight.is_local is None else sight.is_local)


def over_mesh(on_device, in_specs, out_specs, *args):
  """on_device(*args), with the parts of args that each device has.

  The mesh is that of jax.set_mesh; without one, there is one device.
  """
  if jax.sharding.get_abstract_mesh().empty:
    return on_device(*args)
  return jax.shard_map(
    on_device,
    in_specs=in_specs,
    out_specs=out_specs,
    check_vma=False,  # Pallas's calls don't say over what they vary.
  )(*args)
