"""Losses do not depend on the mesh, not even with dropout."""

import pathlib

import jax
import numpy as np
import pytest

from helpers.mesh_losses import losses_on
from maskedlm import objectives
from maskedlm.config import overrides
from maskedlm.data.corpus import store


@pytest.fixture(scope="module")
def task(tiny):
  path, corpus = tiny
  config = overrides.load_config(str(path))
  opened = store.open_corpus(pathlib.Path(corpus))
  return config, objectives.make_task(config, opened)


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


def test_muon_does_not_depend_on_the_mesh(task):
  config, made = task
  config = config.copy_and_resolve_references()
  config.optimizer.update(rule="muon", b1=0.95)
  alone, expected = losses_on(config, made, (1, 1, 1))
  losses, params = losses_on(config, made, (2, 2, 2))
  np.testing.assert_allclose(losses, alone, rtol=1e-5)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4), params, expected
  )


def test_accumulation_without_dropout_equals_the_whole_batch(task):
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
