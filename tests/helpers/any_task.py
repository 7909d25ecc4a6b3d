"""Trains any Task on a mesh."""

import jax
import numpy as np
from ml_collections import ConfigDict

from maskedlm.training import sharding, step


def make_mesh(axes) -> jax.sharding.Mesh:
  """Returns a mesh of as many devices as the axes of sharding.AXES need."""
  return sharding.make_mesh(
    ConfigDict(dict(zip(sharding.AXES, axes, strict=True))),
    jax.devices()[: int(np.prod(axes))],
  )


def train_on(config, task, axes, *, num_steps, accumulate=1):
  """Returns (stats of each step, parameters) of the first steps on a mesh."""
  mesh = make_mesh(axes)
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
