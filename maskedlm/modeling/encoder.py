"""The encoder: embeddings, then N blocks of attention and MLP.

By default it is BERT's (arXiv:1810.04805), with a norm after each sum. What
later encoders changed is chosen by EncoderConfig (architecture.py), once for
each part: POSITIONS, RESIDUALS, NORMS, MLPS are what its names stand for. The
heads that stand on the encoder are in heads.py.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from maskedlm.modeling import positions as positions_lib
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.architecture import encoder_config as encoder_config
from maskedlm.modeling.attention import Attention
from maskedlm.modeling.layers import (
  ACTIVATIONS,
  DTYPES,
  Dense,
  Dropout,
  LayerNorm,
  RMSNorm,
)
from maskedlm.modeling.positions import Sight

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
  """Token + position + token type, normalised; [E] wide."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, input_ids, token_type_ids, positions, *, train: bool):
    """Three arrays [n] of ids -> [n, E]."""
    cfg = self.cfg

    def embed(ids, rows, name):
      E = cfg.embedding_size
      return Embed(rows, E, cfg.init_stddev, cfg.dtype, name=name)(ids)

    x = embed(input_ids, cfg.padded_vocab_size, "token")
    if cfg.position == "learned":
      x = x + embed(positions, cfg.max_positions, "position")
    if cfg.type_vocab_size:
      x = x + embed(token_type_ids, cfg.type_vocab_size, "token_type")
    if cfg.embedding_norm:
      x = make_norm(cfg, "norm")(x)
    return Dropout(cfg.dropout)(x, train=train)


class Mlp(nn.Module):
  """Dense to mlp_width, activation, dense back; then dropout."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x, *, train: bool):
    """x [B*L, D] -> [B*L, D]."""
    cfg = self.cfg
    D, F = cfg.width, cfg.mlp_width
    dense = {"dtype": cfg.dtype, "use_bias": cfg.biases}
    x = Dense((D,), (F,), cfg.init_stddev, **dense, name="up")(x)
    x = ACTIVATIONS[cfg.activation](x)
    x = Dense((F,), (D,), cfg.output_stddev, **dense, name="down")(x)
    return Dropout(cfg.dropout)(x, train=train)


class GatedMlp(nn.Module):
  """Two layers to mlp_width, the activated one times the other; dense back.

  With gelu it is GeGLU (arXiv:2002.05202). The two layers never have a bias,
  and dropout comes before the last, as in MosaicBERT and ModernBERT.
  """

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x, *, train: bool):
    """x [B*L, D] -> [B*L, D]."""
    cfg = self.cfg
    D, F = cfg.width, cfg.mlp_width
    dtype = cfg.dtype
    up = Dense((D,), (2, F), cfg.init_stddev, dtype, False, name="gate_up")(x)
    x = ACTIVATIONS[cfg.activation](up[:, 0]) * up[:, 1]
    x = Dropout(cfg.dropout)(x, train=train)
    down = Dense((F,), (D,), cfg.output_stddev, dtype, cfg.biases, name="down")
    return down(x)


MLPS = {"plain": Mlp, "gated": GatedMlp}

# What the kinds of position add to a Sight: (cfg, positions, theta) -> fields.
POSITIONS = {
  "learned": lambda cfg, positions, theta: {},  # In the embeddings.
  "rope": lambda cfg, positions, theta: {
    "rotation": positions_lib.rotation(
      positions, head_size=cfg.head_size, theta=theta
    )
  },
  "alibi": lambda cfg, positions, theta: {
    "bias": positions_lib.alibi(positions.shape[1], num_heads=cfg.num_heads)
  },
}

# (cfg, name) -> a norm of the last dimension.
NORMS = {
  "layer": lambda cfg, name: LayerNorm(
    cfg.norm_epsilon, cfg.dtype, cfg.biases, name=name
  ),
  "rms": lambda cfg, name: RMSNorm(cfg.norm_epsilon, cfg.dtype, name=name),
}

# (norm, branch, x) -> x with the branch added.
RESIDUALS = {
  "post": lambda norm, branch, x: norm(x + branch(x)),
  "pre": lambda norm, branch, x: x + branch(norm(x)),
}


def make_norm(cfg: EncoderConfig, name: str):
  """The norm that the architecture has everywhere."""
  return NORMS[cfg.norm_kind](cfg, name)


class Layer(NamedTuple):
  """What tells a block from the others: scanned, so that one serves for all."""

  is_first: Any  # shape=(), bool.
  is_global: Any  # shape=(), bool; the others see a window.


class Block(nn.Module):
  """Attention and MLP, each added to its input, with a norm for each."""

  cfg: EncoderConfig
  train: bool

  @nn.compact
  def __call__(self, x, layer: Layer, far: Sight, near: Sight | None):
    """x [B*L, D] -> ([B*L, D], None), as scan wants.

    far is what global layers see; near, if any are local, what those do.
    """
    cfg = self.cfg
    sight = far
    if near is not None:
      sight = jax.tree.map(
        lambda f, n: jnp.where(layer.is_global, f, n), far, near
      )

    def attend(x):
      attention = Attention(
        cfg.num_heads,
        cfg.attention_dropout,
        cfg.init_stddev,
        cfg.dtype,
        cfg.output_stddev,
        cfg.biases,
        name="attention",
      )
      y = attention(x, *sight, train=self.train)
      return Dropout(cfg.dropout)(y, train=self.train)

    def transform(x):
      return MLPS[cfg.mlp](cfg, name="mlp")(x, train=self.train)

    norm = make_norm(cfg, "attention_norm")

    def attention_norm(x):
      # The first block's comes right after the norm of the embeddings.
      y = norm(x)
      return jnp.where(layer.is_first, x, y) if cfg.skip_first_norm else y

    residual = RESIDUALS[cfg.norm_order]
    x = residual(attention_norm, attend, x)
    x = residual(make_norm(cfg, "mlp_norm"), transform, x)
    self.sow("intermediates", "layer", x)  # For who asks (mlm.encode_layers).
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

    A position sees those of equal segment id; if cfg.causal, only those to its
    left. positions is 0..L-1 by default. With train, dropout needs
    rngs={"dropout": key}.
    """
    cfg = self.cfg
    B, L = input_ids.shape
    if positions is None:
      positions = jnp.broadcast_to(jnp.arange(L), (B, L))
    x = Embeddings(cfg, name="embeddings")(
      input_ids.reshape(B * L),
      token_type_ids.reshape(B * L),
      positions.reshape(B * L),
      train=train,
    )
    E, D, N = cfg.embedding_size, cfg.width, cfg.num_layers
    if E != D:
      project = Dense(
        (E,), (D,), cfg.init_stddev, cfg.dtype, cfg.biases, name="project"
      )
      x = project(x)
    self.sow("intermediates", "embedded", x)
    blocks = nn.scan(
      REMAT[cfg.remat](Block),
      variable_axes={"params": 0, "intermediates": 0, "attention": 0},
      split_rngs={"params": True, "dropout": True},
      in_axes=(0, nn.broadcast, nn.broadcast),
      length=N,
    )
    layers = Layer(np.arange(N) == 0, np.array(cfg.global_layers))
    far, near = look(cfg, segment_ids, positions)
    x, _ = blocks(cfg, train, name="layers")(x, layers, far, near)
    if cfg.norm_order == "pre":  # Nothing has normalised the sum yet.
      x = make_norm(cfg, "final_norm")(x)
    return x.reshape(B, L, D)


def look(
  cfg: EncoderConfig, segment_ids, positions
) -> tuple[Sight, Sight | None]:
  """(far, near): the Sight of global layers, and of local ones if there are.

  segment_ids, positions: [B, L].
  """
  L = segment_ids.shape[1]
  place = POSITIONS[cfg.position]
  visible = positions_lib.same_segment(segment_ids)
  if cfg.causal:
    visible = visible & positions_lib.backwards(L)
  far = Sight(visible, **place(cfg, positions, cfg.rope_theta))
  if not cfg.local_window:
    return far, None
  near = visible & positions_lib.within(L, cfg.local_window)
  return far, Sight(near, **place(cfg, positions, cfg.local_rope_theta))
