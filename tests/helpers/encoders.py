"""Encoders of any options with random parameters: outputs and gradients."""

import jax
import jax.numpy as jnp

from helpers import encoder_reference
from helpers.encoder_reference import B, L
from maskedlm.modeling.encoder import Encoder

INPUTS = ("input_ids", "token_type_ids", "segment_ids")


def param_shapes(cfg):
  """Returns the shapes of the parameters."""
  ids = jax.ShapeDtypeStruct((B, L), jnp.int32)

  def init(key, ids):
    return Encoder(cfg).init(key, ids, ids, ids, train=False)["params"]

  return jax.eval_shape(init, jax.random.key(0), ids)


def shapes_by_path(cfg):
  """Returns {path: shape} of the parameters."""
  leaves = jax.tree_util.tree_flatten_with_path(param_shapes(cfg))[0]
  return {
    jax.tree_util.keystr(path, simple=True, separator="/"): x.shape
    for path, x in leaves
  }


def make_params(cfg):
  """Returns random parameters (encoder_reference.randomise)."""
  return encoder_reference.randomise(param_shapes(cfg))


def encode(cfg, params, batch, positions=None, *, key=None):
  """Returns the vectors [B, L, D] of a batch; a key turns on dropout."""

  @jax.jit
  def apply(params, ids, types, segments, positions):
    return Encoder(cfg).apply(
      {"params": params},
      ids,
      types,
      segments,
      positions,
      train=key is not None,
      rngs={} if key is None else {"dropout": key},
    )

  return apply(params, *(batch[name] for name in INPUTS), positions)


def gradient(cfg, params, batch):
  """Returns the gradient of a weighted mean of the vectors, with dropout."""

  def loss(params):
    x = Encoder(cfg).apply(
      {"params": params},
      *(batch[name] for name in INPUTS),
      train=True,
      rngs={"dropout": jax.random.key(7)},
    )
    weights = jnp.cos(jnp.arange(x.size, dtype=jnp.float32)).reshape(x.shape)
    return jnp.mean(x.astype(jnp.float32) * weights)

  return jax.jit(jax.grad(loss))(params)
