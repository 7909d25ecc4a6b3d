"""Attention within a window as attention of short rows, one for each block.

A block of queries attends to its own keys and to those of the blocks beside
it, so a kernel that knows no windows computes a band, with a mask as wide as
that. Time and memory are linear in the length.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from maskedlm.modeling.attention.mask import AttentionMask

MIN_BLOCK = 64  # Queries: a tile of a GPU's kernel.
# Blocks of a row from which a band is faster than a mask of the whole row, as
# keys and values are copied three times: on an H200 both take as long at 512
# tokens and windows of 128 (docs/results/attention.md).
_MIN_BLOCKS = 9


def saves(mask: AttentionMask) -> bool:
  """Returns whether rows are long enough for a band to be faster."""
  return mask.segment_ids.shape[1] > (_MIN_BLOCKS - 1) * _block(mask)


def _block(mask: AttentionMask) -> int:
  return max(mask.window // 2, MIN_BLOCK)


def attend(query, key, value, *, function: Callable, mask: AttentionMask):
  """Returns attention [B, L, H, K] within mask.window.

  Args:
    query, key, value: as in layer.attend.
    function: (query [N, l, H, K], key [N, s, H, K], value [N, s, H, K], mask=
      [N, 1, l, s] bool) -> [N, l, H, K].
    mask: as in layer.attend; is_local is not read.
  """
  B, L = mask.segment_ids.shape
  size = _block(mask)
  num = -(-L // size)

  def blocks(x):  # [B, L, ...] -> [B, num, size, ...]
    widths = [(0, 0), (0, num * size - L)] + [(0, 0)] * (x.ndim - 2)
    return jnp.pad(x, widths).reshape(B, num, size, *x.shape[2:])

  def around(x):  # [B, L, ...] -> [B, num, 3 * size, ...]
    widths = [(0, 0), (1, 1)] + [(0, 0)] * (x.ndim - 1)
    padded = jnp.pad(blocks(x), widths)
    return jnp.concatenate([padded[:, i : i + num] for i in range(3)], axis=2)

  def rows(x):  # [B, num, ...] -> [B * num, ...]
    return x.reshape(B * num, *x.shape[2:])

  segments = jnp.asarray(mask.segment_ids, jnp.int32) + 1  # 0: no column.
  distance = np.subtract.outer(np.arange(size), np.arange(-size, 2 * size))
  allowed = np.abs(distance) <= mask.window // 2
  if mask.causal:
    allowed &= distance >= 0
  same = blocks(segments)[..., :, None] == around(segments)[..., None, :]
  args = blocks(query), around(key), around(value)
  y = function(*map(rows, args), mask=rows(same & allowed)[:, None])
  return y.reshape(B, num * size, *query.shape[2:])[:, :L]
