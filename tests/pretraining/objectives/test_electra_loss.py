"""ELECTRA's loss and gradients against plain references."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.stub_electra import make_batch, make_config, make_task, sizes
from helpers.stub_objective import B, L, jitted_loss, random_params
from maskedlm.modeling.encoder import Encoder
from maskedlm.modeling.heads import MlmHead
from maskedlm.pretraining.objectives import electra
from maskedlm.training import step as steps
from maskedlm.training.sharding import by_path
from maskedlm.training.step import totals


@pytest.fixture
def task(monkeypatch):
  return make_task(monkeypatch)


def test_loss_by_its_parts(task):
  # The modules are applied one by one, and the sums are plain Python.
  params = jax.device_get(random_params(task))
  # Scale scores to -2 to 2; they would be nearly equal.
  dense = params["discriminator_head"]["dense"]
  dense["kernel"] *= 100
  dense["bias"] += np.float32(110.3)
  batch = {**make_batch()}
  batch["example_weights"] = np.float32([1, 1, 0, 1, 1, 1, 0, 1])
  batch = jax.device_get(task.corrupt(batch, jax.random.key(1)))
  terms, metrics = jitted_loss(task)(params, batch, None, False)
  cfg, small = sizes(task)
  table = params["encoder"]["embeddings"]
  arrays = batch["token_type_ids"], batch["segment_ids"]

  def encode(cfg, params, ids):
    apply = functools.partial(Encoder(cfg).apply, train=False)
    return np.asarray(jax.jit(apply)({"params": params}, ids, *arrays))

  generator = {**params["generator"], "embeddings": table}
  seen = encode(small, generator, batch["input_ids"])
  places = batch["masked_positions"]
  logits = jax.jit(MlmHead(small).apply)(
    {"params": params["mlm_head"]},
    np.take_along_axis(seen, places[..., None], axis=1),
    table["token"]["embedding"],
  )
  sampled = np.asarray(electra.sample(logits, batch))
  logits = np.float64(logits)
  ids, fake = batch["input_ids"].copy(), np.zeros((B, L))
  mlm_sum = mlm_count = 0
  for b in range(B):
    for p in range(places.shape[1]):
      if not batch["masked_weights"][b, p]:
        continue
      label = batch["masked_labels"][b, p]
      mlm_sum += np.log(np.exp(logits[b, p]).sum()) - logits[b, p, label]
      mlm_count += 1
      ids[b, places[b, p]] = sampled[b, p]
      fake[b, places[b, p]] = sampled[b, p] != label
  hidden = encode(cfg, params["encoder"], ids)
  head = params["discriminator_head"]
  x = hidden @ head["transform"]["kernel"]
  x = x + head["transform"]["bias"]
  x = x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
  scores = (x @ head["dense"]["kernel"] + head["dense"]["bias"])[..., 0]
  total = count = flagged = found = right = 0
  for b in range(B):
    for i in range(L):
      if not batch["segment_ids"][b, i] or not batch["example_weights"][b]:
        continue
      probability = 1 / (1 + math.exp(-scores[b, i]))
      if not fake[b, i]:
        probability = 1 - probability
      total -= math.log(probability)
      count += 1
      flagged += scores[b, i] > 0
      found += (scores[b, i] > 0) * fake[b, i]
      right += (scores[b, i] > 0) == fake[b, i]
  # All tokens, with [CLS] and [SEP], of rows of 13, 12, 10, 9, 8 and 6.
  assert count == 58
  np.testing.assert_allclose(terms["mlm"], (mlm_sum, mlm_count), rtol=1e-4)
  np.testing.assert_allclose(
    terms["discriminator"], (50 * total, count), rtol=1e-4
  )
  assert set(terms) == {"mlm", "discriminator"}
  np.testing.assert_allclose(
    metrics["discriminator_loss"], (total, count), rtol=1e-4
  )
  np.testing.assert_allclose(metrics["discriminator_accuracy"], (right, count))
  assert 0 < found < fake.sum() != flagged
  np.testing.assert_allclose(
    metrics["discriminator_precision"], (found, flagged)
  )
  np.testing.assert_allclose(
    metrics["discriminator_recall"], (found, fake.sum())
  )
  np.testing.assert_allclose(metrics["replaced_share"], (fake.sum(), count))


def test_which_parameters_learn_from_each_term(task):
  params = random_params(task)
  batch = jax.jit(task.corrupt)(make_batch(), jax.random.key(1))

  @jax.jit
  @jax.grad
  def gradient(params, weights):
    terms, _ = totals(task.loss(params, batch, jax.random.key(2), True))
    return sum(weights[name] * x for name, (x, _) in terms.items())

  def slope(term):
    weights = {name: float(name == term) for name in ("mlm", "discriminator")}
    return {
      path: float(np.abs(x).max())
      for path, x in by_path(gradient(params, weights)).items()
    }

  def of(slopes, *parts):
    return [x for path, x in slopes.items() if path.startswith(parts)]

  found = slope("discriminator")
  # No gradient passes through sampling.
  assert max(of(found, "generator/", "mlm_head/")) == 0
  assert min(of(found, "discriminator_head/")) > 0
  assert found["encoder/embeddings/token/embedding"] > 0
  assert found["encoder/layers/mlp/up/kernel"] > 0
  filled = slope("mlm")
  assert max(of(filled, "discriminator_head/", "encoder/layers/")) == 0
  assert filled["encoder/project/kernel"] == 0
  assert filled["generator/project/kernel"] > 0
  assert filled["encoder/embeddings/token/embedding"] > 0
  assert min(of(filled, "mlm_head/")) > 0


def test_each_encoder_has_its_own_dropout_key(task, monkeypatch):
  keys = []

  def encode(cfg, params, batch, key, train):
    assert train
    keys.append(jax.random.key_data(key))
    return jnp.zeros((*batch["input_ids"].shape, cfg.width))

  monkeypatch.setattr(electra.masked_lm, "encode", encode)
  params = random_params(task)
  batch = jax.jit(task.corrupt)(make_batch(), jax.random.key(1))

  def of_step(key):
    task.loss(params, batch, key, True)
    return keys

  generator, discriminator = jax.jit(of_step)(jax.random.key(2))
  assert not np.array_equal(generator, discriminator)


def test_microbatches_sample_the_same_tokens(monkeypatch):
  task = make_task(monkeypatch, make_config(dropout=0.0, attention_dropout=0.0))
  params = random_params(task)
  batch = jax.jit(task.corrupt)(make_batch(), jax.random.key(1))

  @functools.partial(jax.jit, static_argnums=2)
  def gradient(params, batch, parts):
    return steps.gradient_of(task, params, batch, jax.random.key(3), parts)

  whole, parts = (gradient(params, batch, n) for n in (1, 4))
  np.testing.assert_allclose(parts[1], whole[1], rtol=1e-5)
  for name, pair in whole[2].items():
    np.testing.assert_allclose(parts[2][name], pair, rtol=1e-4, atol=1e-6)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4),
    parts[0],
    whole[0],
  )
