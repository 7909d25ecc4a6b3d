"""Learning rates by layer: layer-wise decay and freezing, for fine-tuning.

A rate of each parameter as a share of the schedule's, found by its path. The
layers are scanned, so that a leaf of them has one share a layer.
"""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from maskedlm.core.errors import ConfigError
from maskedlm.training.sharding import path_of

_LAYERS = r"^encoder/layers/"
# What lies below the first layer.
_BELOW = r"^encoder/(embeddings|project)/"


def shares(params: Any, *, layer_decay: float, frozen_layers: int) -> Any:
  """Returns the share of the learning rate that each parameter gets.

  With N layers, those of the heads get 1, layer n of the encoder (from 0)
  layer_decay ** (N + 1 - n), the embeddings layer_decay ** (N + 2): a power
  for each step down, as ELECTRA's fine-tuning counts them
  (arXiv:2003.10555; finetune/... layerwise_lr_decay). frozen_layers = k
  freezes the embeddings and the first k layers; -1 the whole encoder.

  Args:
    params: the parameters, or their ShapeDtypeStructs.

  Returns:
    A tree like params: numbers, or float32 [N, 1, ...] for stacked layers.

  Raises:
    ConfigError: there are fewer layers than frozen_layers.
  """
  leaves = jax.tree_util.tree_leaves_with_path(params)
  sizes = [
    x.shape[0] for path, x in leaves if re.search(_LAYERS, path_of(path))
  ]
  if not sizes:
    return jax.tree.map(lambda x: 1.0, params)
  N = sizes[0]
  if frozen_layers > N:
    raise ConfigError(
      f"optimizer.frozen_layers={frozen_layers}: expected at most {N}, the "
      "number of layers, or -1 for the whole encoder."
    )
  frozen = N if frozen_layers == -1 else frozen_layers

  def share(path, x):
    path = path_of(path)
    if frozen_layers == -1 and path.startswith("encoder/"):
      return 0.0
    if re.search(_LAYERS, path):
      layer = np.arange(N)
      power = layer_decay ** (N + 1 - layer) * (layer >= frozen)
      power = power.astype(np.float32)
      return power.reshape(N, *[1] * (len(x.shape) - 1))
    if re.search(_BELOW, path):
      return 0.0 if frozen else layer_decay ** (N + 2)
    return layer_decay if path.startswith("encoder/") else 1.0

  return jax.tree.map_with_path(share, params)


def freeze(params: Any, by_layer: Any) -> Any:
  """Returns the parameters, without gradient where `shares` is 0.

  Backward isn't computed where nothing below learns, and what doesn't learn
  doesn't count in the gradient's norm.
  """

  def of_array(x, share):
    frozen = int(np.sum(np.equal(share, 0)))  # The first layers, or all.
    if not frozen:
      return x
    if np.size(share) in (1, frozen):
      return jax.lax.stop_gradient(x)
    still, rest = jax.lax.stop_gradient(x[:frozen]), x[frozen:]
    return jnp.concatenate([still, rest])

  return jax.tree.map(of_array, params, by_layer)


def scale(
  inner: optax.GradientTransformation, shares: Any
) -> optax.GradientTransformation:
  """Returns `inner` with each update times its share; same state."""

  def update(grads, state, params=None):
    updates, state = inner.update(grads, state, params)
    return jax.tree.map(lambda u, s: u * jnp.asarray(s), updates, shares), state

  return optax.GradientTransformation(inner.init, update)
