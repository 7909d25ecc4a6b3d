"""Losses do not depend on the mesh, not even with dropout."""

import jax
import numpy as np
import pytest

from helpers import any_task
from maskedlm.config import defaults as config_lib
from maskedlm.config import overrides
from maskedlm.data.corpus import store
from maskedlm.pretraining import objectives
from maskedlm.training import sharding, step

DROPOUT = {"dropout": 0.1, "attention_dropout": 0.1}
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
# 2 heads of keys on 2 devices.
GROUPED = {
  "num_kv_heads": 2,
  "position": "alibi",
  "norm_order": "pre",
  "norm_kind": "rms",
  "mlp": "gated",
  "activation": "silu",
  "biases": False,
  "embedding_width": 8,
}

# Heads on both axes: a mask decoder above one layer, and RTD.
DISENTANGLED = {
  "position": "disentangled",
  "type_vocab_size": 0,
  "num_layers": 4,
}


def losses_on(config, task, axes):
  """Returns the losses of four steps on a mesh, and the parameters."""
  stats, params = any_task.train_on(config, task, axes, num_steps=4)
  return [step["loss"][0] for step in stats], params


def config_of(tiny, objective, model):
  """Returns the config of an objective, of the sizes of `tiny`."""
  given = overrides.load_config(str(tiny[0]))
  config = config_lib.default(objective)
  for section in ("corpus", "tokenizer", "model", "data", "train"):
    config[section].update(given[section].to_dict())
  config.model.update(DROPOUT | model)
  config.optimizer.update(learning_rate=3e-3, warmup_steps=5)
  return config


def gradient_on(config, task, axes):
  """Returns (terms of the loss, gradient) of the first batch on a mesh."""
  mesh = any_task.make_mesh(axes)
  made = step.over_mesh(config, task, mesh)

  @jax.jit
  def gradient(params, batch):
    corrupt, dropout = jax.random.split(jax.random.key(1))
    batch = task.corrupt(batch, corrupt)

    def total(params):
      terms, _ = task.loss(params, batch, dropout, True)
      means = {name: x / y for name, (x, y) in step.totals(terms).items()}
      return sum(means.values()), means

    slope, means = jax.grad(total, has_aux=True)(params)
    return means, slope

  with jax.set_mesh(mesh):
    batch = sharding.place(task.batch_at("train", 0), mesh)
    return jax.device_get(gradient(made.init().params, batch))


def assert_equal(ours, expected):
  """Checks the losses of steps, and the parameters afterwards."""
  np.testing.assert_allclose(ours[0], expected[0], rtol=1e-5)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4),
    ours[1],
    expected[1],
  )


def test_losses_do_not_depend_on_the_mesh(tiny, capfd):
  """The layers are unrolled, as by default."""
  config = overrides.load_config(str(tiny[0]))
  config.model.update(**DROPOUT, unroll=True)
  task = objectives.make_task(config, store.open_corpus(tiny[1]))
  one, all_axes = (
    losses_on(config, task, axes) for axes in ((1, 1, 1), (2, 2, 2))
  )
  assert_equal(all_axes, one)
  assert "rematerialization" not in capfd.readouterr().err


@pytest.mark.parametrize(
  ("objective", "model", "rule"),
  [("roberta", MODERN, "muon"), ("causal", GROUPED, "adam")],
  ids=["modern, with Muon", "causal, grouped"],
)
def test_newer_encoders_do_not_depend_on_the_mesh(
  tiny, objective, model, rule, capfd
):
  config = config_of(tiny, objective, model)
  config.optimizer.rule = rule
  if "isolate_documents" in config.objective:
    config.objective.isolate_documents = True
  task = objectives.make_task(config, store.open_corpus(tiny[1]))
  alone = losses_on(config, task, (1, 1, 1))
  assert_equal(losses_on(config, task, (2, 2, 2)), alone)
  assert alone[0][-1] < alone[0][0]
  if rule != "muon":  # It gathers whole matrices.
    assert "rematerialization" not in capfd.readouterr().err


def test_gradients_of_both_networks_of_deberta(tiny):
  """The mask decoder, RTD and the table of distances, split by 4 and by 2."""
  config = config_of(tiny, "deberta", DISENTANGLED)
  task = objectives.make_task(config, store.open_corpus(tiny[1]))
  (terms, ours), (expected, theirs) = (
    gradient_on(config, task, axes) for axes in ((1, 4, 2), (1, 1, 1))
  )
  assert terms.keys() == {"mlm", "discriminator"}
  for name, value in expected.items():
    np.testing.assert_allclose(terms[name], value, rtol=1e-5)

  def check(path, a, b):
    np.testing.assert_allclose(a, b, atol=1e-5 * np.abs(b).max(), err_msg=path)

  jax.tree.map_with_path(check, ours, theirs)
