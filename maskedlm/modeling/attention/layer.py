"""Multi-head self-attention of the encoder (arXiv:1706.03762, section 3.2.2).

`Attention` is the layer. `attend` is the common interface of the
implementations, one of which dispatch.py chooses: `plain` is here, the others
in blockwise.py and vendor_kernels.py. All take the mask as an AttentionMask;
only `plain` makes an array of it. They know nothing of grouped-query attention:
the layer repeats keys and values for the queries that share them.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax.ad_checkpoint import checkpoint_name

from maskedlm.modeling import positions
from maskedlm.modeling.arrays import Array, Float
from maskedlm.modeling.attention import blockwise, dispatch, vendor_kernels
from maskedlm.modeling.attention.mask import AttentionMask, to_array
from maskedlm.modeling.attention.softmax_sum import dropped_sum, softmax_sum
from maskedlm.modeling.layers import Dense, Dropout, on_cpu, parts
from maskedlm.modeling.positions import alibi, rotate


def attend(
  query: Float[Array, "B L H K"],
  key: Float[Array, "B S H K"],
  value: Float[Array, "B S H K"],
  mask: AttentionMask,
  *,
  implementation: str,
) -> Float[Array, "B L H K"]:
  """Returns attention, of the type of query, key and value.

  The implementation is one of dispatch.IMPLEMENTATIONS, except "auto".
  """
  function = FUNCTIONS[implementation]
  if not mask.right_to_left:
    return function(query, key, value, mask)
  query, key, value = (jnp.flip(x, axis=1) for x in (query, key, value))
  return jnp.flip(function(query, key, value, _mirror(mask)), axis=1)


def _mirror(mask: AttentionMask) -> AttentionMask:
  """Returns the mask of mirrored rows, whose right is to the left."""
  return mask._replace(
    segment_ids=jnp.flip(mask.segment_ids, axis=1),
    right_to_left=False,
    one_text=False,  # Padding comes first.
  )


def scores(
  query: Float[Array, "B L H K"],
  key: Float[Array, "B S H K"],
  mask: AttentionMask,
) -> Float[Array, "B H L S"]:
  """Returns q·k / sqrt(K) before the softmax in float32.

  With mask.relative, it is (q·k + `distance_scores`) / sqrt(3 K). Where l does
  not attend to s it is -1e9.
  """
  logits = jnp.einsum("BLHK,BSHK->BHLS", query, key).astype(jnp.float32)
  terms = 1
  if mask.relative is not None:
    logits, terms = logits + distance_scores(query, key, *mask.relative), 3
  logits = logits * (terms * query.shape[-1]) ** -0.5
  if mask.alibi:
    logits = logits + alibi(query.shape[1], num_heads=query.shape[2])
  return jnp.where(to_array(mask), logits, -1e9)


@jax.custom_vjp
def distance_scores(
  query: Float[Array, "B L H K"],
  key: Float[Array, "B S H K"],
  of_query: Float[Array, "R H K"],
  of_key: Float[Array, "R H K"],
) -> Float[Array, "B H L S"]:
  """Returns q·k' + k·q' for the key k' and query q' of each distance, float32.

  They are the content-to-position and position-to-content terms of DeBERTa
  (arXiv:2006.03654, equation 4), of rows as positions.distance_rows numbers
  them. The gradient, reverse mode only, is `_distance_gradient`: that of the
  lookup would add L^2 H numbers one by one.
  """
  L = query.shape[1]
  down = L - jnp.arange(2 * L)  # Distances, of which the first occurs nowhere.

  def of_pairs(x, table, rows):
    # Where each distance has a row of its own, there is nothing to select; an
    # exported model of any length takes the rows, too.
    near = not isinstance(L, int) or 2 * L <= positions.BUCKETS
    used = table[rows] if near else table
    numbers = ((3,), (2,)), ((2,), (1,))
    products = jax.lax.dot_general(x, used, numbers)  # [H, B, L, R]
    if not near:
      products = jnp.take(products, rows, axis=3, mode="clip")
    # Position l needs the columns from L - l on. Read as rows that are shorter
    # by one, these begin at the same place: there are no L^2 H lookups.
    flat = products.reshape(*products.shape[:2], 2 * L, L)[:, :, 1:]
    return flat.reshape(*products.shape[:3], 2 * L - 1)[..., :L]

  of_queries = of_pairs(query, of_key, positions.distance_rows(down))
  of_keys = of_pairs(key, of_query, positions.distance_rows(-down))
  both = of_queries.astype(jnp.float32) + of_keys.swapaxes(2, 3)
  return both.swapaxes(0, 1)


def _distance_gradient(saved, slope: Float[Array, "B H L S"]):
  """Returns the gradient of `distance_scores` by its arguments.

  It is by matmuls with a vector for each distance. As a block of b queries has
  L + b of them, blocks save work.
  """
  B, L, H, K = saved[0].shape
  n = math.gcd(L, 4)
  b = L // n
  down = b * (jnp.arange(n)[:, None] + 1) - jnp.arange(L + b)

  def of_pairs(slope, x, table, rows):
    # The inverse of shortening rows above.
    slope = slope.astype(x.dtype).reshape(B, H, n, b, L)
    slope = slope.transpose(1, 2, 0, 3, 4)
    slope = jnp.pad(slope, [(0, 0)] * 4 + [(0, b - 1)]).reshape(H, n, B, -1)
    slope = jnp.pad(slope, [(0, 0)] * 3 + [(b, 0)]).reshape(H, n, B, b, L + b)
    # The smaller operands are turned: XLA:CPU would turn the larger ones.
    vectors = table[rows].transpose(2, 0, 1, 3)
    of_x = jnp.einsum("HnBbW,HnWK->HnBbK", slope, vectors)
    blocks = x.reshape(B, n, b, H, K).transpose(3, 1, 4, 0, 2)
    of_rows = jnp.einsum("HnKBb,HnBbW->HnKW", blocks, slope)
    of_table = jnp.zeros_like(table).at[rows].add(of_rows.transpose(1, 3, 0, 2))
    return of_x.transpose(2, 1, 3, 0, 4).reshape(x.shape), of_table

  query, key, of_query, of_key = saved
  above, below = positions.distance_rows(down), positions.distance_rows(-down)
  query, of_key = of_pairs(slope, query, of_key, above)
  key, of_query = of_pairs(slope.swapaxes(2, 3), key, of_query, below)
  return query, key, of_query, of_key


distance_scores.defvjp(
  lambda *saved: (distance_scores(*saved), saved), _distance_gradient
)


def entropy(
  query: Float[Array, "B L H K"],
  key: Float[Array, "B S H K"],
  mask: AttentionMask,
) -> Float[Array, "B L"]:
  """Returns the entropy of the weights of each query in float32.

  It is in nats, and the mean over heads: 0 for a query that attends to one key,
  log(n) for one that attends to n keys equally.
  """
  if mask.relative is not None:
    logs = jax.nn.log_softmax(scores(query, key, mask))
    return -jnp.sum(jnp.exp(logs) * logs, axis=-1).mean(axis=1)
  if mask.right_to_left:
    query, key = jnp.flip(query, axis=1), jnp.flip(key, axis=1)
    return jnp.flip(entropy(query, key, _mirror(mask)), axis=1)
  return blockwise.entropy(query, key, mask).mean(axis=1)


def plain(
  query: Float[Array, "B L H K"],
  key: Float[Array, "B S H K"],
  value: Float[Array, "B S H K"],
  mask: AttentionMask,
  drop=lambda weights: weights,
) -> Float[Array, "B L H K"]:
  """Returns attention from an array of all scores [B, H, L, S].

  `drop` is applied to the weights, float32, before the values are summed.
  """
  weights = drop(jax.nn.softmax(scores(query, key, mask), axis=-1))
  # einsum would compute [B, H, K, L], which takes XLA:CPU twice as long.
  summed = jax.lax.dot_general(
    weights.astype(value.dtype), value, (((3,), (1,)), ((0, 1), (0, 2)))
  )
  return summed.transpose(0, 2, 1, 3)


def plain_on_cpu(
  query: Float[Array, "B L H K"],
  key: Float[Array, "B S H K"],
  value: Float[Array, "B S H K"],
  mask: AttentionMask,
  kept: Float[Array, "B H L S"] | None = None,
) -> Float[Array, "B L H K"]:
  """Returns what `plain` does, faster on a CPU.

  In training, the weights are multiplied by `kept`, which is dropout.
  """
  if kept is not None:
    query, key, value = map(_heads_first, (query, key, value))
  logits, values = scores(query, key, mask), value.transpose(0, 2, 1, 3)
  if kept is None:
    return softmax_sum(logits, values).transpose(0, 2, 1, 3)
  return dropped_sum(logits, values, kept).transpose(0, 2, 1, 3)


def _heads_first(x):
  """Returns x [B, L, H, K], kept as [B, H, L, K], once for both passes."""
  return jax.lax.optimization_barrier(x.swapaxes(1, 2)).swapaxes(1, 2)


FUNCTIONS = {
  "xla": plain,
  "blockwise": blockwise.attend,
  "cudnn": vendor_kernels.cudnn,
  "splash": vendor_kernels.splash,
}


class Attention(nn.Module):
  """Self-attention over flattened rows."""

  num_heads: int
  dropout: float
  init_stddev: float
  dtype: str
  output_stddev: float | None = None  # For the last layer; None: init_stddev.
  use_bias: bool = True
  implementation: str = "xla"  # One of dispatch.IMPLEMENTATIONS.
  num_kv_heads: int = 0  # Of keys and values, G; 0 for num_heads.

  @nn.compact
  def __call__(
    self,
    x: Float[Array, "BL D"],
    mask: AttentionMask,
    rotation=None,
    distances: Float[Array, "R D"] | None = None,
    states: Float[Array, "BL D"] | None = None,
    *,
    train: bool,
  ) -> Float[Array, "BL D"]:
    """Returns the sums of values of each token's heads, projected.

    Args:
      x: the tokens of all rows.
      mask: which of them each attends to.
      rotation: positions.rotation's; None without RoPE.
      distances: vectors of distances, which are projected as tokens are; None
        except in DeBERTa.
      states: what keys and values are made of; None for x.
      train: apply dropout.

    Raises:
      ConfigError: the implementation does not support the case.
    """
    B, L = mask.segment_ids.shape
    D, H = x.shape[-1], self.num_heads
    K = D // H
    G = self.num_kv_heads or H
    project = self._projection(H, K) if G == H else self._group_projection(H, K)
    query, key, value = project(x, (B, L))
    if states is not None:
      _, key, value = project(states, (B, L))
    if rotation is not None:
      query, key = rotate(query, *rotation), rotate(key, *rotation)
    if distances is not None:
      relative = [x[0] for x in project(distances, (1, len(distances)))[:2]]
      if G != H:
        relative[1] = jnp.repeat(relative[1], H // G, axis=1)
      mask = mask._replace(relative=tuple(relative))
    if G != H:  # Heads of queries are numbered group by group.
      key, value = (jnp.repeat(x, H // G, axis=2) for x in (key, value))

    def drop(weights):
      return Dropout(self.dropout)(weights, train=train)

    # For masked_lm.attention_entropy.
    if self.is_mutable_collection("entropy") and not self.is_initializing():
      self.sow("entropy", "entropy", entropy(query, key, mask))
    # For masked_lm.attention_scores; init makes the dropout of "xla" too.
    if self.is_mutable_collection("attention"):
      self.sow("attention", "scores", scores(query, key, mask))
      chosen = "xla"
    else:
      chosen = dispatch.choose_implementation(
        self.implementation, self._case(K, mask, train)
      )
    if chosen == "xla" and on_cpu():
      kept = drop(jnp.ones((B, H, L, L))) if train else None
      y = plain_on_cpu(query, key, value, mask, kept)
    elif chosen == "xla":
      y = plain(query, key, value, mask, lambda x: drop(x.astype(value.dtype)))
    else:
      y = attend(query, key, value, mask, implementation=chosen)
    y = checkpoint_name(y, "attended")  # Kept by encoder.REMAT.
    stddev = self.output_stddev or self.init_stddev
    if G == H:
      out = self._dense((H, K), (D,), "out", stddev)
      return out(y.reshape(B * L, H, K))
    out = self._dense((G, H // G, K), (D,), "group_out", stddev)
    return out(y.reshape(B * L, G, H // G, K))

  # Without nowrap, profiles would name the method too.
  @nn.nowrap
  def _projection(self, H: int, K: int):
    """Returns (x, (B, L)) -> query, key and value, [B, L, H, K] each."""
    qkv = self._dense((H * K,), (3, H, K), "qkv")  # One matmul for all three.
    return lambda x, rows: parts(qkv(x).reshape(*rows, 3, H, K), axis=2)

  @nn.nowrap
  def _group_projection(self, H: int, K: int):
    """Returns what `_projection` does, but key and value are [B, L, G, K].

    The kernels have an axis of groups, so that a mesh splits all of them by
    groups, and growing copies whole ones.
    """
    G, D = self.num_kv_heads, H * K
    query = self._dense((D,), (G, H // G, K), "group_query")
    key_value = self._dense((D,), (2, G, K), "group_key_value")

    def project(x, rows):
      both = parts(key_value(x).reshape(*rows, 2, G, K), axis=2)
      return query(x).reshape(*rows, H, K), *both

    return project

  @nn.nowrap
  def _dense(self, inputs, features, name: str, stddev: float | None = None):
    return Dense(
      tuple(inputs),
      features,
      self.init_stddev if stddev is None else stddev,
      self.dtype,
      self.use_bias,
      name=name,
    )

  def _case(
    self, head_size: int, mask: AttentionMask, train: bool
  ) -> dispatch.Case:
    L = mask.segment_ids.shape[1]
    return dispatch.Case(
      **machine(),
      length=L if isinstance(L, int) else None,
      head_size=head_size,
      dtype=self.dtype,
      dropout=self.dropout if train else 0.0,
      alibi=mask.alibi,
      relative=mask.relative is not None,
      mixed=mask.causal_rows is not None,
    )


def machine() -> dict[str, Any]:
  """Returns the platform and capability of a Case for what is being compiled.

  They describe the mesh in use (jax.set_mesh), whose chips this machine may
  lack. The capability of such chips is unknown; all that `maskedlm plan` knows
  are new enough.
  """
  device = jax.sharding.get_abstract_mesh().abstract_device
  if device is None:
    device = jax.devices()[0]
  if device.platform not in ("gpu", "cuda", "rocm"):
    return {"platform": device.platform}
  same_kind = (d for d in jax.devices() if d.device_kind == device.device_kind)
  capability = getattr(next(same_kind, None), "compute_capability", None)
  # JAX calls AMD's GPUs "gpu" too. Their capability is a name, such as gfx942.
  if device.platform == "rocm" or str(capability).startswith("gfx"):
    return {"platform": "rocm"}
  return {"platform": "gpu", "capability": capability and float(capability)}
