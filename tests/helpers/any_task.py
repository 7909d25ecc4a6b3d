"""Checks that the Task of every objective must pass."""

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from maskedlm.training import sharding, step


def check_every_parameter_learns(task, batch):
  """Checks that the loss has a finite, non-zero gradient everywhere."""
  params = task.init(jax.random.key(0))
  batch = task.corrupt(batch, jax.random.key(1))

  @jax.jit
  @jax.grad
  def gradient(params):
    terms, _ = step.totals(task.loss(params, batch, jax.random.key(3), True))
    return sum(s / w for s, w in terms.values())

  for path, x in jax.tree_util.tree_leaves_with_path(gradient(params)):
    name = jax.tree_util.keystr(path)
    # The key's bias shifts all scores of a query equally; softmax ignores it.
    if "qkv" in name and x.shape[1] == 3:
      x = x[:, ::2]
    assert np.isfinite(x).all() and np.abs(x).max() > 0, name


def check_split_over_8_devices(task, params, batch):
  """Checks that masks and losses don't depend on the number of devices."""

  @jax.jit
  def run(params, batch):
    batch = task.corrupt(batch, jax.random.key(4))
    terms = task.loss(params, batch, jax.random.key(5), True)
    return batch, step.totals(terms)

  mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
  alone, losses = run(params, batch)
  together, split_losses = run(
    jax.device_put(params, NamedSharding(mesh, PartitionSpec())),
    jax.device_put(batch, NamedSharding(mesh, PartitionSpec("data"))),
  )
  for name, x in alone.items():
    np.testing.assert_array_equal(together[name], x)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5),
    losses,
    split_losses,
  )


def train_on(config, task, axes, *, num_steps, accumulate=1):
  """Returns (stats of each step, parameters) of the first steps on a mesh."""
  mesh = sharding.make_mesh(
    ConfigDict(dict(zip(sharding.AXES, axes, strict=True))),
    jax.devices()[: int(np.prod(axes))],
  )
  config = config.copy_and_resolve_references()
  config.train.update(num_steps=12, accumulate=accumulate)
  made = step.over_mesh(config, task, mesh)
  stats = []
  with jax.set_mesh(mesh):
    state = made.init()
    fixed = sharding.put_on_devices(task.fixed.load(), made.state.fixed)
    state = state._replace(fixed=fixed)
    for i in range(num_steps):
      batch = sharding.place(task.batch_at("train", i), mesh)
      state, got = made.step(state, batch)
      stats.append(jax.tree.map(float, got))
  return stats, jax.device_get(state.params)
