"""Multi-head self-attention of the encoder (arXiv:1706.03762, section 3.2.2).

`Attention` is the layer; `attend` is one interface over several ways to compute
it, which attention_choice.py chooses from: the plain one is here, the others in
attention_blockwise.py, attention_kernels.py and attention_triton.py. The mask
is given as a positions.Sight; only the plain way writes it out as an array.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax.ad_checkpoint import checkpoint_name

from maskedlm.modeling import dropout_bits
from maskedlm.modeling.attention import blockwise, triton
from maskedlm.modeling.attention import dispatch as choice
from maskedlm.modeling.attention import vendor_kernels as kernels
from maskedlm.modeling.attention.mask import Sight, visible
from maskedlm.modeling.layers import Dense, Dropout
from maskedlm.modeling.positions import alibi, rotate


def attend(query, key, value, sight: Sight, *, implementation: str):
  """query, key, value [B, L, H, K] -> [B, L, H, K].

  Args:
    query, key, value: of one type, which is that of the result.
    sight: who sees whom.
    implementation: of attention_choice.KNOWN, but for "auto".
  """
  return IMPLEMENTATIONS[implementation](query, key, value, sight)


def plain(query, key, value, sight: Sight, through=lambda weights: weights):
  """attend by an array of scores [B, H, L, S], as XLA fuses it.

  through: the weights, float32, -> what the values are summed with.
  """
  scores = jnp.einsum("BLHK,BSHK->BHLS", query, key)
  scores = scores.astype(jnp.float32) * query.shape[-1] ** -0.5
  if sight.alibi:
    scores = scores + alibi(query.shape[1], num_heads=query.shape[2])
  scores = jnp.where(visible(sight), scores, -1e9)
  weights = through(jax.nn.softmax(scores, axis=-1))
  return jnp.einsum("BHLS,BSHK->BLHK", weights.astype(value.dtype), value)


IMPLEMENTATIONS = {
  "xla": plain,
  "blockwise": blockwise.attend,
  "triton": lambda *qkv_sight: triton.attend(
    jnp.stack(qkv_sight[:3], axis=2), qkv_sight[3]
  ),
  "cudnn": kernels.cudnn,
  "splash": kernels.splash,
  "tokamax": kernels.tokamax,
}


class Attention(nn.Module):
  """Self-attention over flattened rows."""

  num_heads: int
  dropout: float
  init_stddev: float
  dtype: str
  output_stddev: float | None = None  # Of the last layer; None: init_stddev.
  use_bias: bool = True
  implementation: str = "xla"  # Of attention_choice.KNOWN.

  @nn.compact
  def __call__(self, x, sight: Sight, rotation=None, *, train: bool):
    """x [B*L, D] -> [B*L, D]; rotation is of positions.rotation.

    Raises:
      ConfigError: the implementation can't serve.
    """
    B, L = sight.segment_ids.shape
    D, H = x.shape[-1], self.num_heads
    K = D // H
    stddevs = self.init_stddev, self.output_stddev or self.init_stddev
    dense = {"dtype": self.dtype, "use_bias": self.use_bias}
    # One matmul for query, key and value.
    qkv = Dense((D,), (3, H, K), stddevs[0], **dense, name="qkv")(x)
    qkv = qkv.reshape(B, L, 3, H, K)
    query, key, value = (qkv[:, :, i] for i in range(3))
    if rotation is not None:
      query, key = rotate(query, *rotation), rotate(key, *rotation)

    def through(weights):
      self.sow("attention", "weights", weights)  # Read by mlm.attend.
      return Dropout(self.dropout)(weights.astype(x.dtype), train=train)

    if self.is_mutable_collection("attention"):  # By mlm.attend, or init.
      chosen = "xla"
    else:
      chosen = choice.choose(self.implementation, self._case(K, sight, train))
    if chosen == "xla":
      y = plain(query, key, value, sight, through)
    elif chosen == "triton":
      if rotation is not None:
        qkv = jnp.stack([query, key, value], axis=2)
      y = triton.attend(qkv, sight, self._drop(train))
    else:
      y = attend(query, key, value, sight, implementation=chosen)
    if chosen != "triton":  # It says itself what backward keeps.
      y = checkpoint_name(y, "attended")  # encoder.REMAT.
    y = y.reshape(B * L, H, K)
    return Dense((H, K), (D,), stddevs[1], **dense, name="out")(y)

  def _drop(self, train: bool) -> triton.Drop | None:
    count = dropout_bits.count_of(self.dropout)
    if not train or not count:
      return None
    return triton.Drop(dropout_bits.seeds(self.make_rng("dropout")), count)

  def _case(self, head_size: int, sight: Sight, train: bool) -> choice.Case:
    L = sight.segment_ids.shape[1]
    return choice.Case(
      **machine(),
      length=L if isinstance(L, int) else None,
      head_size=head_size,
      dtype=self.dtype,
      dropout=self.dropout if train else 0.0,
      alibi=sight.alibi,
      windows=bool(sight.window),
      one_text=sight.one_text,
    )


def machine() -> dict[str, Any]:
  """What is compiled for: platform and capability of a choice.Case.

  By the mesh in use (jax.set_mesh), whose chips may not be here. The capability
  of such chips isn't known; those of maskedlm plan are all new enough.
  """
  device = jax.sharding.get_abstract_mesh().abstract_device
  if device is None:
    device = jax.devices()[0]
  if device.platform not in ("gpu", "cuda", "rocm"):
    return {"platform": device.platform}
  here = (d for d in jax.devices() if d.device_kind == device.device_kind)
  found = getattr(next(here, None), "compute_capability", None)
  # JAX calls AMD's "gpu" too. Their capability is a name, such as gfx942.
  if device.platform == "rocm" or str(found).startswith("gfx"):
    return {"platform": "rocm"}
  return {"platform": "gpu", "capability": found and float(found)}
