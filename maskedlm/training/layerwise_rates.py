"""Learning rates by layer: decay, freezing, gradual unfreezing.

They are for fine-tuning. Each parameter has a multiplier of the schedule's
rate, which depends on its path, and a step from which on it is trained. As
layers are scanned, each of their arrays has one of both per layer.
"""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params, Task
from maskedlm.training.sharding import by_path, path_of

_LAYERS = r"^encoder/layers/"
# Parameters below the first layer.
_BELOW = r"^encoder/(embeddings|project)/"


def layer_multipliers(
  params: Any, *, layer_decay: float, frozen_layers: int
) -> Any:
  """Returns the multiplier of the learning rate of each parameter.

  With N layers, it is 1 for the heads, layer_decay for the encoder's final
  norm, layer_decay ** (N + 1 - n) for its layer n (from 0), and
  layer_decay ** (N + 2) for the embeddings: one power for each step down, as in
  ELECTRA's fine-tuning (arXiv:2003.10555; layerwise_lr_decay in its code).

  Args:
    params: the parameters, or their ShapeDtypeStructs.
    layer_decay: above 0, at most 1.
    frozen_layers: k freezes the embeddings and the first k layers; -1 the whole
      encoder.

  Returns:
    A tree like params, of floats, or float32 [N, 1, ...] for stacked layers.

  Raises:
    ConfigError: there are fewer layers than frozen_layers.
  """
  N = _num_layers(params)
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


def _num_layers(params: Any) -> int:
  """Returns N, the number of stacked layers; 0 without an encoder."""
  leaves = by_path(params).items()
  return next((x.shape[0] for p, x in leaves if re.search(_LAYERS, p)), 0)


def first_steps(params: Any, *, unfreeze_share: float, num_steps: int) -> Any:
  """Returns the step from which on each parameter is trained.

  This is gradual unfreezing (Howard & Ruder 2018, arXiv:1801.06146, section
  3.3) from the top: the heads are trained from step 0; with N layers, layer n
  (from 0) and the embeddings begin after (N - n) / (N + 1) and after all of
  the first unfreeze_share * num_steps steps. The paper's epoch for each is
  unfreeze_share = (N + 1) / epochs.

  Args:
    params: the parameters, or their ShapeDtypeStructs.
    unfreeze_share: at least 0, below 1; 0 trains everything from step 0.
    num_steps: steps of the whole run.

  Returns:
    A tree like params, of ints, or int32 [N, 1, ...] for stacked layers.
  """
  N = _num_layers(params)
  steps = np.arange(N + 2) / (N + 1) * unfreeze_share * num_steps
  steps = np.rint(steps).astype(np.int32)

  def first(path, x):
    path = path_of(path)
    if re.search(_LAYERS, path):
      return steps[N:0:-1].reshape(N, *[1] * (len(x.shape) - 1))
    if re.search(_BELOW, path):
      return int(steps[N + 1])
    # A norm above the layers begins with the uppermost.
    return int(steps[1]) if path.startswith("encoder/") else 0

  return jax.tree.map_with_path(first, params)


def unfreeze(first: Any, step: Any, updates: Any) -> Any:
  """Returns the updates at a step, 0 where a parameter isn't trained yet.

  Moments follow the gradient before, so that a parameter's first update is no
  larger than usual, as Adam's would be if they were 0. `first` is the result of
  `first_steps`; the step may be traced.
  """
  return jax.tree.map(
    lambda begin, u: jnp.where(step >= begin, u, 0), first, updates
  )


def freeze(params: Any, by_layer: Any) -> Any:
  """Stops the gradients of parameters whose multiplier is 0.

  Then no backward pass is computed below the lowest trained layer, and frozen
  parameters don't count in the gradient's norm. `by_layer` is the result of
  `layer_multipliers`.
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


def scale_by_layer(
  inner: optax.GradientTransformation, multipliers: Any
) -> optax.GradientTransformation:
  """Returns `inner` with its updates multiplied; its state is unchanged."""

  def update(grads, state, params=None):
    updates, state = inner.update(grads, state, params)
    return jax.tree.map(
      lambda u, m: u * jnp.asarray(m), updates, multipliers
    ), state

  return optax.GradientTransformation(inner.init, update)


def by_layer(config, task: Task, params: Params) -> tuple[Task, Callable]:
  """Returns the Task with layers frozen, and a function that unfreezes them.

  The function is (step, update) -> update; the parameters may be shapes.
  """
  o = config.optimizer
  multipliers = layer_multipliers(
    params, layer_decay=o.layer_decay, frozen_layers=o.frozen_layers
  )
  first = first_steps(
    params, unfreeze_share=o.unfreeze_share, num_steps=config.train.num_steps
  )

  def loss(params, *args):
    frozen = freeze({name: params[name] for name in multipliers}, multipliers)
    return task.loss({**params, **frozen}, *args)

  def update_of(step, update):
    if not o.unfreeze_share:
      return update
    return unfreeze(first, step, update)

  return task._replace(loss=loss), update_of
