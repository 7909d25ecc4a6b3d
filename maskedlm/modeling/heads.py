"""The heads on the encoder: masked language model, pooler, next sentence.

Each is a module of its own with its own subtree of the parameters, so that
any of them can be left out, or loaded alone, without touching the encoder.
"""

import jax.numpy as jnp
from flax import linen as nn

from maskedlm.modeling.encoder import Encoder, EncoderConfig
from maskedlm.modeling.layers import ACTIVATIONS, DTYPES, Dense, LayerNorm


def gather_positions(x, positions):
  """x [B, L, D] at positions [B, P] -> [B, P, D]."""
  return jnp.take_along_axis(x, positions[..., None], axis=1)


class MlmHead(nn.Module):
  """Dense, activation, norm, then the token embedding as output layer.

  It takes gathered positions, never whole rows: the logits are [B, P, V].
  """

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x, embedding):
    """x [B, P, D], embedding [V, D] -> float32 logits [B, P, V].

    V is the padded vocabulary; its ids beyond vocab_size get -1e9.
    """
    cfg = self.cfg
    B, P, D = x.shape
    x = x.reshape(B * P, D)
    x = Dense((D,), (D,), cfg.init_stddev, cfg.dtype, name="transform")(x)
    x = ACTIVATIONS[cfg.activation](x)
    x = LayerNorm(cfg.norm_epsilon, cfg.dtype, name="norm")(x)
    V = cfg.padded_vocab_size
    bias = self.param("bias", nn.initializers.zeros, (V,))
    logits = jnp.einsum("ND,VD->NV", x, embedding.astype(DTYPES[cfg.dtype]))
    logits = logits.astype(jnp.float32) + bias
    logits = jnp.where(jnp.arange(V) < cfg.vocab_size, logits, -1e9)
    return logits.reshape(B, P, V)


class Pooler(nn.Module):
  """The vector of [CLS], the first token, through dense and tanh."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x):
    """x [B, L, D] -> [B, D]."""
    cfg = self.cfg
    D = cfg.width
    dense = Dense((D,), (D,), cfg.init_stddev, cfg.dtype, name="dense")
    return jnp.tanh(dense(x[:, 0]))


class NspHead(nn.Module):
  """Is B the sentence that follows A (0), or a random one (1)?"""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, pooled):
    """pooled [B, D] -> float32 logits [B, 2]."""
    cfg = self.cfg
    dense = Dense((cfg.width,), (2,), cfg.init_stddev, cfg.dtype, name="dense")
    return dense(pooled).astype(jnp.float32)


def mlm_logits(params, cfg: EncoderConfig, batch, positions):
  """Logits for the tokens at `positions`, without dropout.

  Args:
    params: the whole model's, with "encoder" and "mlm_head".
    batch: input_ids, token_type_ids and segment_ids, [B, L] each.
    positions: [B, P].

  Returns:
    [B, P, V] float32, V the true vocabulary.
  """
  hidden = Encoder(cfg).apply(
    {"params": params["encoder"]},
    batch["input_ids"],
    batch["token_type_ids"],
    batch["segment_ids"],
    train=False,
  )
  logits = MlmHead(cfg).apply(
    {"params": params["mlm_head"]},
    gather_positions(hidden, positions),
    params["encoder"]["embeddings"]["token"]["embedding"],
  )
  return logits[..., : cfg.vocab_size]
