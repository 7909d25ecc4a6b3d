"""Text features: the logits by hand, no gradient, pairs and numbers, a run.

Files and metrics are tested with classification, the layers with features.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers.encoder_reference import B
from maskedlm.core.errors import ConfigError
from maskedlm.finetune.classification import features as text_features
from maskedlm.finetune.contract import Setup
from maskedlm.interop import word_vectors
from maskedlm.modeling import masked_lm
from maskedlm.training.step import totals

CFG = reference.config(dropout=0.3)
BATCH = {
  **reference.make_batch(),
  "labels": np.arange(B, dtype=np.int32) % 3,
  "example_weights": np.ones(B, np.float32),
}


def make(**options):
  app = text_features.make_application(
    Setup(None, CFG, {"labels": ["a", "b", "c"]}, 7),
    text_features.Options(**options),
  )
  key = jax.random.key(0)
  shapes = jax.eval_shape(
    lambda: {
      "encoder": masked_lm.init(CFG, key, key)["encoder"],
      **app.init(key),
    }
  )
  return app, reference.randomise(shapes)


@pytest.mark.parametrize("vector", ["cls", "mean"])
def test_logits_in_plain_numpy(vector):
  app, params = make(vector=vector)
  logits = jax.jit(app.outputs)(params, BATCH)["logits"]
  dense = reference.as_float64(params["feature_head"])["dense"]
  names = ("input_ids", "token_type_ids", "segment_ids")
  for i in range(B):
    x = reference.encode(
      params["encoder"], CFG, *(BATCH[name][i] for name in names)
    )
    real = BATCH["segment_ids"][i] > 0
    x = x[0] if vector == "cls" else x[: len(real)][real].mean(0)
    expected = x @ dense["kernel"] + dense["bias"]
    np.testing.assert_allclose(logits[i], expected, atol=1e-4)


def test_only_the_head_and_the_weights_of_layers_have_a_gradient():
  app, params = make(layers="weighted_last_four")

  def loss(params):
    terms, _ = totals(app.loss(params, BATCH, jax.random.key(1), True))
    return terms["class"][0]

  grads = jax.jit(jax.grad(loss))(params)
  assert all(not jnp.any(x) for x in jax.tree.leaves(grads["encoder"]))
  assert set(grads["feature_head"]) == {"dense", "layers"}
  assert all(jnp.any(x) for x in jax.tree.leaves(grads["feature_head"]))


def test_static_vectors_have_a_mean_but_no_cls():
  """Their logits: the mean of the table's rows, then the dense layer."""
  cfg = word_vectors.make_config(vocab_size=9, width=3)
  setup = Setup(None, cfg, {"labels": ["a", "b"]}, 7)
  app = text_features.make_application(
    setup, text_features.Options(vector="mean")
  )
  table = np.arange(128 * 3, dtype=np.float32).reshape(128, 3) ** 2 % 7
  kernel, bias = np.float32([[1, 2], [0, -1], [3, 1]]), np.float32([0.5, -2])
  params = {
    "encoder": {"embeddings": {"token": {"embedding": table}}},
    "feature_head": {"dense": {"kernel": kernel, "bias": bias}},
  }
  ids = np.int32([[2, 5, 8, 3, 0], [2, 7, 3, 0, 0]])
  batch = {
    "input_ids": ids,
    "token_type_ids": 0 * ids,
    "segment_ids": np.int32(ids > 0),
  }
  logits = app.outputs(params, batch)["logits"]
  means = [table[[2, 5, 8, 3]].mean(0), table[[2, 7, 3]].mean(0)]
  np.testing.assert_allclose(logits, means @ kernel + bias, rtol=1e-5)
  with pytest.raises(ConfigError, match=r"task\.vector=mean"):
    text_features.make_application(setup, text_features.Options(vector="cls"))
  of_layers = text_features.Options(vector="mean", layers="concat_last_four")
  with pytest.raises(ConfigError, match=r"task\.layers='concat_last_four'"):
    text_features.make_application(setup, of_layers).init(jax.random.key(0))
