"""Losses do not depend on the mesh, not even with dropout."""

import jax
import numpy as np
import pytest

from helpers.mesh_losses import losses_on
from maskedlm.config import defaults as config_lib
from maskedlm.config import overrides
from maskedlm.data.corpus import store
from maskedlm.pretraining import objectives

MODERN = {
  "type_vocab_size": 0,
  "position": "rope",
  "local_window": 8,
  "global_every": 2,
  "norm_order": "pre",
  "skip_first_norm": True,
  "mlp": "gated",
  "biases": False,
}
OTHERS = {
  "position": "alibi",
  "mlp": "gated",
  "norm_kind": "rms",
  "embedding_width": 8,
}
# As EuroBERT: 2 heads of keys on 2 devices.
GROUPED = {
  "num_kv_heads": 2,
  "position": "rope",
  "norm_order": "pre",
  "norm_kind": "rms",
  "mlp": "gated",
  "activation": "silu",
  "biases": False,
}


def assert_equal(ours, expected):
  """Checks the losses of steps, and the parameters afterwards."""
  np.testing.assert_allclose(ours[0], expected[0], rtol=1e-5)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4),
    ours[1],
    expected[1],
  )


@pytest.fixture(scope="module")
def task(tiny):
  config = overrides.load_config(str(tiny[0]))
  return config, objectives.make_task(config, store.open_corpus(tiny[1]))


@pytest.fixture(scope="module")
def one_device(task):
  return losses_on(*task, (1, 1, 1))


@pytest.mark.parametrize("axes", [(8, 1, 1), (2, 4, 1), (2, 2, 2)])
def test_losses_do_not_depend_on_the_mesh(task, one_device, axes, capfd):
  assert_equal(losses_on(*task, axes), one_device)
  assert "rematerialization" not in capfd.readouterr().err


def test_muon_does_not_depend_on_the_mesh(task):
  config, made = task
  config = config.copy_and_resolve_references()
  config.optimizer.update(rule="muon", b1=0.95)
  alone = losses_on(config, made, (1, 1, 1))
  assert_equal(losses_on(config, made, (2, 2, 2)), alone)


def test_accumulation_without_dropout_equals_the_whole_batch(task):
  config, made = task
  quiet = made._replace(
    loss=lambda params, batch, key, train: made.loss(params, batch, key, False)
  )
  whole = losses_on(config, quiet, (1, 1, 1))
  assert_equal(losses_on(config, quiet, (2, 2, 2), accumulate=4), whole)


@pytest.mark.parametrize(
  ("objective", "model"),
  [("roberta", MODERN), ("causal", OTHERS), ("roberta", GROUPED)],
  ids=["modern", "causal, and others", "grouped"],
)
def test_newer_encoders_do_not_depend_on_the_mesh(
  tiny, objective, model, capfd
):
  given = overrides.load_config(str(tiny[0]))
  config = config_lib.default(objective)
  for section in ("corpus", "tokenizer", "model", "data", "train"):
    config[section].update(given[section].to_dict())
  config.model.update(model)
  config.optimizer.update(learning_rate=3e-3, warmup_steps=5)
  if "isolate_documents" in config.objective:
    config.objective.isolate_documents = True
  task = objectives.make_task(config, store.open_corpus(tiny[1]))
  alone = losses_on(config, task, (1, 1, 1))
  assert_equal(losses_on(config, task, (2, 2, 2)), alone)
  assert alone[0][-1] < alone[0][0]
  assert "rematerialization" not in capfd.readouterr().err
