"""The same losses on any mesh, dropout included."""

import pathlib

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from maskedlm import flags, objectives, optim, sharding
from maskedlm import step as steps
from maskedlm.corpus import store

NUM_STEPS = 4


@pytest.fixture(scope="module")
def task(tiny):
  path, corpus = tiny
  config = flags.load_config(str(path))
  opened = store.open_corpus(pathlib.Path(corpus))
  return config, objectives.make(config, opened)


def losses_on(config, task, axes, *, accumulate=1):
  count = int(np.prod(axes))
  mesh = sharding.make_mesh(
    ConfigDict(dict(zip(sharding.AXES, axes, strict=True))),
    jax.devices()[:count],
  )
  shapes = jax.eval_shape(task.init, jax.random.key(0))
  tx, schedule = optim.make(config.optimizer, 12, shapes)
  init = steps.make_init(task, tx, config.seed)
  shardings = sharding.tree_shardings(jax.eval_shape(init), mesh)
  state = jax.jit(init, out_shardings=shardings)()
  step = jax.jit(
    steps.make_step(
      task,
      tx,
      schedule,
      seed=config.seed,
      accumulate=accumulate,
      gather=lambda params: sharding.gather(params, mesh),
    ),
    in_shardings=(shardings, sharding.rows(mesh)),
    out_shardings=(shardings, sharding.replicated(mesh)),
    donate_argnums=0,
  )
  losses = []
  for i in range(NUM_STEPS):
    batch = sharding.place(task.batch_at("train", i), mesh)
    state, stats = step(state, batch)
    losses.append(float(stats["loss"][0]))
  return losses, jax.device_get(state.params)


@pytest.fixture(scope="module")
def one_device(task):
  return losses_on(*task, (1, 1, 1))


@pytest.mark.parametrize("axes", [(8, 1, 1), (2, 4, 1), (2, 2, 2)])
def test_losses_do_not_depend_on_the_mesh(task, one_device, axes, capfd):
  losses, params = losses_on(*task, axes)
  np.testing.assert_allclose(losses, one_device[0], rtol=1e-5)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4),
    params,
    one_device[1],
  )
  assert "rematerialization" not in capfd.readouterr().err


def test_accumulation_without_dropout_is_the_big_batch(task):
  config, made = task
  quiet = made._replace(
    loss=lambda params, batch, key, train: made.loss(params, batch, key, False)
  )
  whole, expected = losses_on(config, quiet, (1, 1, 1))
  parts, params = losses_on(config, quiet, (2, 2, 2), accumulate=4)
  np.testing.assert_allclose(parts, whole, rtol=1e-5)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4), params, expected
  )
