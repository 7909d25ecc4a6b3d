"""The encoder: embeddings, then N blocks of attention and MLP.

By default it is BERT's (arXiv:1810.04805), with a norm after each sum.
EncoderConfig (architecture.py) selects the changes of later encoders by names
that are looked up in RESIDUALS, NORMS and mlp.MLPS. heads.py has the
heads.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax.sharding import PartitionSpec

from maskedlm.modeling import positions as positions_lib
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.arrays import Array, Bool, Float, Int
from maskedlm.modeling.attention.layer import Attention
from maskedlm.modeling.attention.mask import AttentionMask
from maskedlm.modeling.attention.vendor_kernels import ROWS
from maskedlm.modeling.layers import (
  DTYPES,
  Dense,
  Dropout,
  LayerNorm,
  RMSNorm,
  fork,
  on_cpu,
)
from maskedlm.modeling.mlp import make_mlp
from maskedlm.modeling.token_dropout import token_scale

# Wraps a block so that it keeps some of its results for the backward pass,
# which recomputes the rest. "dots" keeps those of dense layers and attention;
# scores, dropout and elementwise operations are recomputed, at most 3% of the
# FLOPs (docs/guides/pretrain/scaling.md).
_KEEP = jax.checkpoint_policies
REMAT: dict[str, Callable[..., Any]] = {
  "none": lambda block, **options: block,
  "dots": functools.partial(
    nn.remat,
    policy=_KEEP.save_from_both_policies(
      _KEEP.dots_with_no_batch_dims_saveable,
      _KEEP.save_only_these_names("attended"),
    ),
  ),
  "full": nn.remat,
}


class Embed(nn.Module):
  """A table of vectors, looked up by id."""

  rows: int
  width: int
  init_stddev: float
  dtype: str

  @nn.compact
  def __call__(self, ids: Int[Array, "*B"]) -> Float[Array, "*B width"]:
    """Returns vectors of `dtype`."""
    init = nn.initializers.truncated_normal(self.init_stddev)
    table = self.param("embedding", init, (self.rows, self.width))
    return table[ids].astype(DTYPES[self.dtype])


class Embeddings(nn.Module):
  """The sum of token, position and token type embeddings, normalised."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(
    self,
    input_ids: Int[Array, " n"],
    token_type_ids: Int[Array, " n"],
    positions: Int[Array, " n"] | None,
    scale: Float[Array, " n"] | None = None,
    *,
    train: bool,
  ) -> Float[Array, "n E"]:
    """Returns vectors of cfg.dtype, those of tokens times `scale`."""
    cfg = self.cfg

    def embed(ids, rows, name):
      E = cfg.embedding_size
      return Embed(rows, E, cfg.init_stddev, cfg.dtype, name=name)(ids)

    x = embed(input_ids, cfg.padded_vocab_size, "token")
    if scale is not None:
      x = (x * scale[:, None]).astype(x.dtype)
    if cfg.position == "learned" and positions is not None:
      x = x + embed(positions, cfg.max_positions, "position")
    if cfg.type_vocab_size:
      x = x + embed(token_type_ids, cfg.type_vocab_size, "token_type")
    if cfg.embedding_norm:
      x = make_norm(cfg, "norm")(x)
    return Dropout(cfg.dropout)(x, train=train)


class Distances(nn.Module):
  """The table of vectors of distances, one for all layers, normalised.

  Its rows are numbered by positions.distance_rows.
  """

  cfg: EncoderConfig

  @nn.compact
  def __call__(self) -> Float[Array, "R D"]:
    """Returns all rows."""
    cfg, rows = self.cfg, 2 * positions_lib.BUCKETS
    table = Embed(rows, cfg.width, cfg.init_stddev, cfg.dtype, name="position")
    return make_norm(cfg, "norm")(table(jnp.arange(rows)))


# (cfg, name) -> a norm of the last dimension.
NORMS = {
  "layer": lambda cfg, name: LayerNorm(
    cfg.norm_epsilon, cfg.dtype, cfg.biases, name=name
  ),
  "rms": lambda cfg, name: RMSNorm(cfg.norm_epsilon, cfg.dtype, name=name),
}

# (norm, branch, x) -> x with the branch added.
RESIDUALS = {
  "post": lambda norm, branch, x: norm(fork(x + branch(x))),
  "pre": lambda norm, branch, x: x + branch(norm(x)),
}


def make_norm(cfg: EncoderConfig, name: str):
  """Returns the architecture's norm as a module named `name`."""
  return NORMS[cfg.norm_kind](cfg, name)


class LayerFlags(NamedTuple):
  """Flags that distinguish layers; scanned, so that all share one Block."""

  is_first: Bool[Array, "..."]
  is_global: Bool[Array, "..."]  # Other layers have a window.


class Block(nn.Module):
  """Attention and MLP, each added to its input, with a norm for each."""

  cfg: EncoderConfig
  train: bool
  one_text: bool  # Every row is one text, then padding.

  @nn.compact
  def __call__(
    self,
    x: Float[Array, "n D"],
    flags: LayerFlags,
    segment_ids: Int[Array, "B L"],
    rotations,
    causal_rows: Bool[Array, " B"] | None,
    distances: Float[Array, "R D"] | None,
    states: Float[Array, "n D"] | None = None,
  ) -> tuple[Float[Array, "n D"], None]:
    """Returns (the tokens' vectors, None), as scan requires.

    x are those of all rows, the rotations from `rotations_of`, causal_rows as
    of Encoder, distances from Distances, and states as of Attention.
    """
    cfg = self.cfg
    rotation = jax.tree.map(
      lambda far, near: jnp.where(flags.is_global, far, near), *rotations
    )
    mask = AttentionMask(
      segment_ids,
      causal_rows=causal_rows,
      causal=cfg.causal or causal_rows is not None,
      right_to_left=cfg.right_to_left,
      window=cfg.local_window,
      is_local=~flags.is_global,
      alibi=cfg.position == "alibi",
      one_text=self.one_text,
    )

    def attend(x):
      attention = Attention(
        cfg.num_heads,
        cfg.attention_dropout,
        cfg.init_stddev,
        cfg.dtype,
        cfg.output_stddev,
        cfg.biases,
        cfg.attention,
        cfg.num_kv_heads,
        name="attention",
      )
      far = distances
      if far is not None:
        far = Dropout(cfg.dropout)(far, train=self.train)
      y = attention(x, mask, rotation, far, states, train=self.train)
      return Dropout(cfg.dropout)(y, train=self.train)

    def transform(x):
      return make_mlp(cfg, "mlp")(x, train=self.train)

    norm = make_norm(cfg, "attention_norm")

    def attention_norm(x):
      # In the first block it would follow the norm of the embeddings.
      y = norm(x)
      return jnp.where(flags.is_first, x, y) if cfg.skip_first_norm else y

    residual = RESIDUALS[cfg.norm_order]
    x = by_rows(residual(attention_norm, attend, by_rows(x)))
    x = by_rows(residual(make_norm(cfg, "mlp_norm"), transform, x))
    self.sow("intermediates", "layer", x)  # For encode_layers.
    return x, None


class Encoder(nn.Module):
  """Maps token ids to contextual vectors; blocks' parameters are [N, ...]."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(
    self,
    input_ids: Int[Array, "B L"],
    token_type_ids: Int[Array, "B L"],
    segment_ids: Int[Array, "B L"],
    positions: Int[Array, "B L"] | None = None,
    causal_rows: Bool[Array, " B"] | None = None,
    *,
    train: bool,
  ) -> Float[Array, "B L D"]:
    """Returns vectors of cfg.dtype.

    Args:
      input_ids, token_type_ids: of the rows.
      segment_ids: a position attends to its own segment and, if cfg.causal,
        only to itself and to its left (with cfg.right_to_left, to its right);
        0 for padding.
      positions: None for 0..L-1; each row is then one text of segment 1,
        followed by padding.
      causal_rows: the rows that are causal, unless cfg.causal says that all
        are; None for none.
      train: apply dropout, which needs rngs={"dropout": key}.
    """
    cfg = self.cfg
    B, L = input_ids.shape
    one_text = positions is None  # Packed rows have positions.
    if positions is None:
      positions = jnp.broadcast_to(jnp.arange(L), (B, L))
    scale = None
    if cfg.token_dropout:
      scale = token_scale(
        input_ids, segment_ids, cfg.mask_id, one_text=one_text
      ).reshape(B * L)
    x = Embeddings(cfg, name="embeddings")(
      input_ids.reshape(B * L),
      token_type_ids.reshape(B * L),
      positions.reshape(B * L),
      scale,
      train=train,
    )
    E, D, N = cfg.embedding_size, cfg.width, cfg.num_layers
    if E != D:
      project = Dense(
        (E,), (D,), cfg.init_stddev, cfg.dtype, cfg.biases, name="project"
      )
      x = project(x)
    self.sow("intermediates", "embedded", x)
    distances = None
    if cfg.position == "disentangled":
      distances = Distances(cfg, name="distances")()
    rotations = rotations_of(cfg, positions, train=train)
    if N:
      blocks = stack(Block, cfg, train, (0, *[nn.broadcast] * 4))
      flags = LayerFlags(np.arange(N) == 0, np.array(cfg.global_layers))
      x, _ = blocks(cfg, train, one_text, name="layers")(
        x, flags, segment_ids, rotations, causal_rows, distances
      )
    if cfg.mask_decoder:
      place = Embed(
        cfg.max_positions,
        D,
        cfg.init_stddev,
        cfg.dtype,
        name="decoder_position",
      )
      last = Block(cfg, train, one_text, name="mask_decoder")
      flags = LayerFlags(np.array(False), np.array(True))
      states, x = x, x + place(positions.reshape(B * L))
      for _ in range(2):  # The same block, as He et al. (arXiv:2111.09543).
        x, _ = last(
          x, flags, segment_ids, rotations, causal_rows, distances, states
        )
    if cfg.norm_order == "pre":  # The sum is not normalised yet.
      x = make_norm(cfg, "final_norm")(x)
    return x.reshape(B, L, D)


def stack(block, cfg: EncoderConfig, train: bool, in_axes):
  """Returns the module class of N blocks with parameters [N, ...].

  Args:
    block: the module class, called as block(x, *inputs) -> (x, None).
    cfg: num_layers, remat and unroll are read.
    train: whether the blocks are used in training.
    in_axes: for each input, 0 if each layer has its own, or nn.broadcast.
  """
  # Outside of a loop, XLA:CPU always merges the recomputation with the
  # original, so that remat would save nothing.
  loses_remat = cfg.remat != "none" and on_cpu()
  unroll = cfg.unroll and train and not loses_remat
  return nn.scan(
    # Elsewhere, this keeps XLA from merging them.
    REMAT[cfg.remat](block, prevent_cse=unroll),
    variable_axes=dict.fromkeys(
      ("params", "intermediates", "attention", "entropy"), 0
    ),
    split_rngs={"params": True, "dropout": True},
    in_axes=in_axes,
    length=cfg.num_layers,
    unroll=cfg.num_layers if unroll else 1,
  )


def rotations_of(
  cfg: EncoderConfig, positions: Int[Array, "B L"], *, train: bool
):
  """Returns the rotations (cos, sin) of global and of local layers.

  Both are None unless positions are encoded by RoPE (positions.py): others are
  in the embeddings, or in the scores.
  """
  if cfg.position != "rope":
    return None, None
  make = positions_lib.rotation
  if train and on_cpu():
    make = positions_lib.looked_up_rotation
  near = cfg.local_rope_theta if cfg.local_window else cfg.rope_theta
  return tuple(
    make(positions, head_size=cfg.head_size, theta=theta)
    for theta in (cfg.rope_theta, near)
  )


def by_rows(x):
  """Returns x [B*L, D] or [B, L, D] split by rows, if fsdp is used.

  Otherwise XLA would keep a layer's parameters split, and each device would
  compute a part of the width for all rows. The mesh is set by jax.set_mesh.
  """
  mesh = jax.sharding.get_abstract_mesh()
  sizes = [mesh.shape.get(axis, 1) for axis in ROWS]
  if sizes[1] == 1 or x.shape[0] % math.prod(sizes):
    return x
  return jax.lax.with_sharding_constraint(x, PartitionSpec(ROWS))
