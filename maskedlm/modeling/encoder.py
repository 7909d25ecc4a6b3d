"""BERT's encoder (arXiv:1810.04805): embeddings, then N post-norm blocks.

EncoderConfig is the one description of the architecture: it is written into
every checkpoint, so nothing that reads one repeats a size. encoder_config
makes it from config.model. The heads that stand on the encoder are in
heads.py.
"""

import dataclasses

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.config import ConfigError, did_you_mean
from maskedlm.modeling.attention import Attention, same_segment
from maskedlm.modeling.layers import (
  ACTIVATIONS,
  DTYPES,
  Dense,
  Dropout,
  LayerNorm,
)

# What backward keeps of a block; the rest it computes again.
REMAT = {
  "none": lambda block: block,
  "dots": lambda block: nn.remat(
    block,
    policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    prevent_cse=False,  # Not needed inside a scan, and slow.
  ),
  "full": lambda block: nn.remat(block, prevent_cse=False),
}


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
  """The architecture. `EncoderConfig(**json.loads(...))` makes it again."""

  vocab_size: int  # The tokenizer's; arrays have padded_vocab_size rows.
  num_layers: int
  width: int
  num_heads: int
  mlp_width: int
  max_positions: int
  activation: str  # A name in layers.ACTIVATIONS.
  dropout: float
  attention_dropout: float
  norm_epsilon: float
  init_stddev: float
  dtype: str  # Of activations: a name in layers.DTYPES.
  remat: str  # A name in REMAT.
  type_vocab_size: int = 2

  @property
  def padded_vocab_size(self) -> int:
    """V of arrays: a multiple of 128, to split evenly and to fill tiles."""
    return -(-self.vocab_size // 128) * 128

  @property
  def head_size(self) -> int:
    """K."""
    return self.width // self.num_heads


def encoder_config(model, vocab_size: int, max_length: int) -> EncoderConfig:
  """The EncoderConfig of config.model, for rows of up to max_length tokens.

  Raises:
    ConfigError: an unknown name, a size that is not positive or does not
      divide, a dropout outside of [0, 1), rows longer than model.max_positions.
  """
  cfg = EncoderConfig(vocab_size=vocab_size, **model)
  for name, known in (
    ("activation", ACTIVATIONS),
    ("dtype", DTYPES),
    ("remat", REMAT),
  ):
    value = getattr(cfg, name)
    if value not in known:
      raise ConfigError(
        f"model.{name}={value!r} is unknown{did_you_mean(value, known)}; "
        f"known: {', '.join(known)}."
      )
  for name in ("num_layers", "width", "num_heads", "mlp_width"):
    if getattr(cfg, name) < 1:
      raise ConfigError(f"model.{name}={getattr(cfg, name)} must be 1 or more.")
  for name in ("dropout", "attention_dropout"):
    if not 0 <= getattr(cfg, name) < 1:
      raise ConfigError(
        f"model.{name}={getattr(cfg, name)} must be at least 0 and below 1."
      )
  if cfg.width % cfg.num_heads:
    raise ConfigError(
      f"model.width={cfg.width} must be divisible by model.num_heads="
      f"{cfg.num_heads}; set model.width="
      f"{-(-cfg.width // cfg.num_heads) * cfg.num_heads} or change the heads."
    )
  if max_length > cfg.max_positions:
    raise ConfigError(
      f"rows of {max_length} tokens (data.length, data.long_length) do not fit "
      f"model.max_positions={cfg.max_positions}; set model.max_positions="
      f"{max_length} or shorten the rows."
    )
  return cfg


class Embed(nn.Module):
  """A table of vectors, looked up by id."""

  rows: int
  width: int
  init_stddev: float
  dtype: str

  @nn.compact
  def __call__(self, ids):
    """ids [...] -> [..., D]."""
    init = nn.initializers.truncated_normal(self.init_stddev)
    table = self.param("embedding", init, (self.rows, self.width))
    return table[ids].astype(DTYPES[self.dtype])


class Embeddings(nn.Module):
  """Token + position + token type, normalised."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, input_ids, token_type_ids, positions, *, train: bool):
    """Three arrays [n] of ids -> [n, D]."""
    cfg = self.cfg

    def embed(ids, rows, name):
      table = Embed(rows, cfg.width, cfg.init_stddev, cfg.dtype, name=name)
      return table(ids)

    x = embed(input_ids, cfg.padded_vocab_size, "token")
    x = x + embed(positions, cfg.max_positions, "position")
    x = x + embed(token_type_ids, cfg.type_vocab_size, "token_type")
    x = LayerNorm(cfg.norm_epsilon, cfg.dtype, name="norm")(x)
    return Dropout(cfg.dropout)(x, train=train)


class Mlp(nn.Module):
  """Dense to mlp_width, activation, dense back."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x):
    """x [B*L, D] -> [B*L, D]."""
    cfg = self.cfg
    D, F = cfg.width, cfg.mlp_width
    x = Dense((D,), (F,), cfg.init_stddev, cfg.dtype, name="up")(x)
    x = ACTIVATIONS[cfg.activation](x)
    return Dense((F,), (D,), cfg.init_stddev, cfg.dtype, name="down")(x)


class Block(nn.Module):
  """Attention and MLP, each added to its input and then normalised."""

  cfg: EncoderConfig
  train: bool

  @nn.compact
  def __call__(self, x, visible):
    """x [B*L, D], visible [B, 1, L, S] -> ([B*L, D], None), as scan wants."""
    cfg = self.cfg
    y = Attention(
      cfg.num_heads,
      cfg.attention_dropout,
      cfg.init_stddev,
      cfg.dtype,
      name="attention",
    )(x, visible, train=self.train)
    y = Dropout(cfg.dropout)(y, train=self.train)
    x = LayerNorm(cfg.norm_epsilon, cfg.dtype, name="attention_norm")(x + y)
    y = Mlp(cfg, name="mlp")(x)
    y = Dropout(cfg.dropout)(y, train=self.train)
    x = LayerNorm(cfg.norm_epsilon, cfg.dtype, name="mlp_norm")(x + y)
    return x, None


class Encoder(nn.Module):
  """Token ids to contextual vectors. The blocks' parameters are stacked [N]."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(
    self,
    input_ids,
    token_type_ids,
    segment_ids,
    positions=None,
    *,
    train: bool,
  ):
    """Four arrays [B, L] of int32 -> [B, L, D] of cfg.dtype.

    A position sees those of equal segment id. positions is 0..L-1 by default.
    With train, dropout needs rngs={"dropout": key}.
    """
    B, L = input_ids.shape
    if positions is None:
      positions = jnp.broadcast_to(jnp.arange(L), (B, L))
    x = Embeddings(self.cfg, name="embeddings")(
      input_ids.reshape(B * L),
      token_type_ids.reshape(B * L),
      positions.reshape(B * L),
      train=train,
    )
    blocks = nn.scan(
      REMAT[self.cfg.remat](Block),
      variable_axes={"params": 0},
      split_rngs={"params": True, "dropout": True},
      in_axes=nn.broadcast,
      length=self.cfg.num_layers,
    )
    x, _ = blocks(self.cfg, train, name="layers")(x, same_segment(segment_ids))
    return x.reshape(B, L, -1)
