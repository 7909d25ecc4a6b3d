"""Positions within attention: RoPE, ALiBi and DeBERTa's distances.

BERT adds positions to its embeddings; ALiBi adds them to the scores instead,
and RoPE (`rotate`) rotates queries and keys by them. DeBERTa has vectors of
distances (`distance_rows`), which queries and keys are compared with.
"""

import math

import jax.numpy as jnp
import numpy as np

from maskedlm.modeling.arrays import Array, Float, Int, Size

# (cos, sin) of the angles by which `rotate` turns K / 2 pairs.
Rotation = tuple[Float[Array, "B L 1 K2"], Float[Array, "B L 1 K2"]]
BUCKETS = 256  # DeBERTa's rows of distances to one side,
_FAR = 512  # from which on all distances are in the last row.


def rotation(
  positions: Int[Array, "B L"], *, head_size: int, theta: float
) -> Rotation:
  """Returns the cosines and sines of positions, for `rotate`.

  RoPE (arXiv:2104.09864) rotates pair i by position * theta^(-2i / K).
  """
  angle = _angles(positions, head_size, theta)
  return jnp.cos(angle), jnp.sin(angle)


def looked_up_rotation(
  positions: Int[Array, "B L"], *, head_size: int, theta: float
) -> Rotation:
  """Returns what `rotation` does, from tables; NaN for positions of L or more.

  XLA:CPU computes a cosine again in each loop that it is fused into, of which
  unrolled layers have many; looking it up there is faster.
  """
  angle = _angles(np.arange(positions.shape[1]), head_size, theta)

  def look_up(table):
    table = jnp.asarray(table)
    return table.at[positions].get(mode="fill", fill_value=np.nan)

  return look_up(np.cos(angle)), look_up(np.sin(angle))


def _angles(
  positions: Int[Array, "*B"], head_size: int, theta: float
) -> Float[Array, "*B 1 K2"]:
  pair = np.arange(0, head_size, 2)
  frequency = np.float32(float(theta) ** (-pair / head_size))
  return positions[..., None, None].astype(np.float32) * frequency


def rotate(
  x: Float[Array, "B L H K"],
  cos: Float[Array, "B L 1 K2"],
  sin: Float[Array, "B L 1 K2"],
) -> Float[Array, "B L H K"]:
  """Returns x rotated; i and i + K / 2 are a pair (GPT-NeoX)."""
  a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
  rotated = jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
  return rotated.astype(x.dtype)


def alibi(length: Size, *, num_heads: int) -> Float[Array, "1 H L S"]:
  """Returns -slope * distance in float32 (arXiv:2108.12409)."""
  slopes = np.asarray(alibi_slopes(num_heads), np.float32)
  return -slopes[None, :, None, None] * distance(length).astype(jnp.float32)


def alibi_slopes(num_heads: int) -> list[float]:
  """Returns a slope for each head: 2^(-8/H), 2^(-16/H), ... 2^-8.

  If the number of heads is not a power of 2, they are the slopes of the power
  below, then every other one of the power above, as in the authors' code.

  >>> alibi_slopes(4), alibi_slopes(3)
  ([0.25, 0.0625, 0.015625, 0.00390625], [0.0625, 0.00390625, 0.25])
  """
  below = 2 ** math.floor(math.log2(num_heads))

  def slopes(n):
    return [2 ** (-8 * (i + 1) / n) for i in range(n)]

  return slopes(below) + slopes(2 * below)[::2][: num_heads - below]


def distance_rows(distances: Int[Array, "*n"]) -> Int[Array, "*n"]:
  """Returns the row of each distance, query - key, in a table of 2 * BUCKETS.

  Row BUCKETS is that of distance 0. Up to BUCKETS / 2, each distance has a row;
  beyond, rows are as wide as their distances are far (microsoft/DeBERTa,
  da_utils.py: make_log_bucket_position).

  >>> distance_rows(jnp.array([-600, -129, -128, 0, 1, 129, 130, 511])).tolist()
  [0, 127, 128, 256, 257, 385, 386, 511]
  """
  every, half = np.arange(-_FAR, _FAR), BUCKETS // 2
  far = np.log(np.maximum(np.abs(every), half) / half)
  far = np.ceil(far / np.log((_FAR - 1) / half) * (half - 1)) + half
  bucket = np.where(np.abs(every) <= half, every, np.sign(every) * far)
  rows = np.clip(bucket + BUCKETS, 0, 2 * BUCKETS - 1).astype(np.int32)
  return jnp.asarray(rows)[jnp.clip(distances, -_FAR, _FAR - 1) + _FAR]


def distance(length: Size) -> Int[Array, "L L"]:
  """Returns the distances between positions."""
  column = jnp.arange(length)
  return jnp.abs(column[:, None] - column[None, :])
