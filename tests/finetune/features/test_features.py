"""Features: the layers chosen, the head on them, and an encoder that stays.

Everything shared with tagging is tested there, the LSTM in test_lstm.py.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers.encoder_reference import B, L
from maskedlm.finetune import config as configs
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.tagging import features
from maskedlm.finetune.tagging.features import Options
from maskedlm.modeling import masked_lm
from maskedlm.modeling.task_heads.layer_features import LAYERS, LayerFeatures
from maskedlm.training.step import totals

LABELS = ["O", "B-A", "I-A"]
CFG = reference.config()
BATCH = {
  **reference.make_batch(),
  # The first real tokens are words of their own.
  "token_words": np.zeros((B, L), np.int32),
  "word_starts": np.zeros((B, L), np.int32),
  "word_tags": np.zeros((B, L), np.int32),
  "begins": np.ones(B, np.int32),
  "ends": np.ones(B, np.int32),
  "example_weights": np.ones(B, np.float32),
}
BATCH["token_words"][:, 0] = 1
BATCH["word_tags"][:, 0] = [0, 1, 2, 1, 0]


def make(cfg=CFG, **options):
  """Returns (Application, random parameters without zeros)."""
  options = Options(**{"lstm_width": 5, **options})
  app = features.make_application(
    Setup(None, cfg, {"labels": LABELS}, L), options
  )
  key = jax.random.key(0)
  shapes = jax.eval_shape(
    lambda: {
      "encoder": masked_lm.init(cfg, key, key)["encoder"],
      **app.init(key),
    }
  )
  return app, reference.randomise(shapes)


def test_layers_by_hand():
  # Layer n has n + 1 everywhere; the embeddings, 100.
  x = jnp.array([100.0, 1, 2, 3, 4, 5])[:, None, None, None]
  x = jnp.broadcast_to(x, (6, 2, 3, 7))
  expected = {
    "embeddings": [100],
    "second_to_last": [4],
    "last": [5],
    "sum_all": [15],
    "sum_last_four": [14],
    "mean_last_four": [3.5],
    "concat_last_four": [2, 3, 4, 5],
  }
  assert set(expected) == set(LAYERS)
  for name, values in expected.items():
    y = LAYERS[name](x)
    np.testing.assert_array_equal(
      y, np.broadcast_to(np.repeat(values, 7), (2, 3, 7 * len(values)))
    )
    # Of two layers the last four are these two, without the embeddings.
    of_two = {"sum_last_four": [3], "mean_last_four": [1.5]}
    of_two = {**of_two, "concat_last_four": [1, 2]}
    if name in of_two:
      assert LAYERS[name](x[:3])[0, 0, ::7].tolist() == of_two[name]


def test_a_learnt_weighted_sum_by_hand():
  # softmax(0, log 3) is 1/4, 3/4; gamma is 2.
  x = jnp.array([100.0, 1, 5])[:, None, None, None]
  x = jnp.broadcast_to(x, (3, 2, 3, 7))
  mix = LayerFeatures("weighted_last_four")
  params = mix.init(jax.random.key(0), x)["params"]
  assert mix.apply({"params": params}, x)[0, 0, 0] == 3  # The mean.
  params = {"scores": jnp.array([0, jnp.log(3.0)]), "gamma": jnp.array(2.0)}
  y = mix.apply({"params": params}, x)
  assert y.shape == (2, 3, 7)
  np.testing.assert_allclose(y, 2 * (1 / 4 + 15 / 4), rtol=1e-6)
  every = LayerFeatures("weighted_all")
  params = every.init(jax.random.key(0), x)["params"]
  assert params["scores"].shape == (3,)  # The embeddings too, as in ELMo.


def test_linear_head_on_the_last_layer_in_plain_numpy():
  app, params = make(layers="last", head="linear")
  tags, probabilities = (
    np.asarray(jax.jit(app.outputs)(params, BATCH)[name])
    for name in ("tags", "probabilities")
  )
  dense = reference.as_float64(params["feature_head"])["dense"]
  names = ("input_ids", "token_type_ids", "segment_ids")
  for i in range(B):
    row = [BATCH[name][i] for name in names]
    x = reference.encode(params["encoder"], CFG, *row)
    logits = x[0] @ dense["kernel"] + dense["bias"]
    assert tags[i, 0] == np.argmax(logits)
    shares = np.exp(logits) / np.exp(logits).sum()
    assert probabilities[i, 0] == pytest.approx(shares.max(), abs=1e-5)


def test_padding_does_not_reach_a_word():
  app, params = make(head="bilstm")
  longer = {
    name: np.pad(x, ((0, 0), (0, 4))) if x.ndim == 2 else x
    for name, x in BATCH.items()
  }
  longer["input_ids"][:, L:] = 7
  outputs = jax.jit(app.outputs)
  for name, x in outputs(params, BATCH).items():
    y = outputs(params, longer)[name]
    np.testing.assert_allclose(x[:, 0], y[:, 0], rtol=1e-5)


def gradient(app, params):
  def loss(params):
    terms, _ = totals(app.loss(params, BATCH, jax.random.key(1), True))
    return terms["tags"][0]

  return jax.jit(jax.grad(loss)).lower(params).compile()


def test_the_encoder_has_no_gradient_and_no_backward_pass():
  cfg = reference.config(dropout=0.1, attention_dropout=0.1)
  app, params = make(cfg, head="linear")
  compiled = gradient(app, params)
  grads = compiled(params)
  assert all(not np.any(x) for x in jax.tree.leaves(grads["encoder"]))
  assert all(np.any(x) for x in jax.tree.leaves(grads["feature_head"]))
  # XLA's own count: a backward pass costs twice what the forward pass does.
  forward = jax.jit(app.outputs).lower(params, BATCH).compile()
  flops = [c.cost_analysis()["flops"] for c in (compiled, forward)]
  assert flops[0] < 1.5 * flops[1]


def test_the_encoder_has_no_dropout_the_head_has():
  cfg = reference.config(dropout=0.5, attention_dropout=0.5)
  app, params = make(cfg, head="linear")
  same, _ = make(head="linear")
  x = jax.jit(app.outputs)(params, BATCH)["probabilities"]
  y = jax.jit(same.outputs)(params, BATCH)["probabilities"]
  np.testing.assert_array_equal(x, y)

  @jax.jit
  def loss(seed):
    terms, _ = totals(app.loss(params, BATCH, jax.random.key(seed), True))
    return terms["tags"][0]

  assert loss(1) == loss(1) != loss(2)


def test_options_include_taggings():
  options = configs.make_task(
    "features", {"head": "linear", "decode": "crf"}
  ).options
  assert (options.layers, options.decode) == ("concat_last_four", "crf")
  assert options.lstm_width == 768
  params = make(decode="crf")[1]
  assert set(params) == {"encoder", "feature_head", "crf"}
