"""Newer encoders have the same losses on 8 devices as on one."""

import pathlib

import jax
import numpy as np
import pytest

from helpers.mesh_losses import losses_on
from maskedlm import objectives
from maskedlm.config import defaults as config_lib
from maskedlm.config import overrides
from maskedlm.data.corpus import store

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


@pytest.mark.parametrize(
  ("objective", "model"),
  [("roberta", MODERN), ("causal", OTHERS), ("roberta", GROUPED)],
  ids=["modern", "causal, and others", "grouped"],
)
def test_losses_do_not_depend_on_the_mesh(tiny, objective, model, capfd):
  path, corpus = tiny
  given = overrides.load_config(str(path))
  config = config_lib.default(objective)
  for section in ("corpus", "tokenizer", "model", "data", "train"):
    config[section].update(given[section].to_dict())
  config.model.update(model)
  config.optimizer.update(learning_rate=3e-3, warmup_steps=5)
  if "isolate_documents" in config.objective:
    config.objective.isolate_documents = True
  task = objectives.make_task(config, store.open_corpus(pathlib.Path(corpus)))
  alone, expected = losses_on(config, task, (1, 1, 1))
  together, params = losses_on(config, task, (2, 2, 2))
  np.testing.assert_allclose(together, alone, rtol=1e-5)
  assert alone[-1] < alone[0]
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4), params, expected
  )
  assert "rematerialization" not in capfd.readouterr().err
