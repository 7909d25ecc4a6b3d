"""ELECTRA: what is sampled, what is told apart, and what learns from what."""

import dataclasses
import functools
import json
import math
import pathlib
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import any_task
from maskedlm.config import defaults as config_lib
from maskedlm.config import overrides
from maskedlm.core.errors import ConfigError
from maskedlm.data.corpus import store
from maskedlm.modeling import flops, masked_lm
from maskedlm.modeling.encoder import Encoder, EncoderConfig
from maskedlm.modeling.heads import MlmHead
from maskedlm.objectives import electra
from maskedlm.training import step as steps
from maskedlm.training.step import totals

PAD, UNK, CLS, SEP, MASK = range(5)
B, L, V = 8, 13, 131


def make_config(**model):
  config = config_lib.default("electra")
  config.model.update(
    num_layers=2,
    width=24,
    num_heads=3,
    mlp_width=40,
    max_positions=17,
    embedding_width=10,
    **model,
  )
  config.data.update(length=L, batch_size=B)
  config.train.num_steps = 10
  return config


@pytest.fixture
def make_task(monkeypatch):
  """-> a Task over a corpus of which only the tokenizer is real."""
  corpus = types.SimpleNamespace(
    tokenizer=types.SimpleNamespace(
      vocab_size=V,
      special=types.SimpleNamespace(mask=MASK, pad=PAD),
      special_ids=np.arange(5),
    ),
    token_counts=np.arange(V) % 7 + 1,
  )
  rows = electra.batching.Batches(
    batch_at=lambda split, step: make_batch(),
    row_ids=lambda split, step: np.arange(B),
    num_heldout_batches=3,
    rows_per_epoch=(7,),
  )
  monkeypatch.setattr(
    electra.pair_rows, "adjacent_batches", lambda *args, **kwargs: rows
  )

  def make(config=None, **options):
    options = {"generator_size": 0.5, **options}
    return electra.make_task(
      config or make_config(), corpus, (0, 1), electra.Options(**options)
    )

  return make


@pytest.fixture
def task(make_task):
  return make_task()


def make_batch():
  """Rows of 13, 12, 11, ... real tokens."""
  rng = np.random.default_rng(0)
  column, length = np.arange(L), (L - np.arange(B))[:, None]
  ids = np.where(column == 0, CLS, rng.integers(5, V, (B, L)))
  ids = np.where(column == length - 1, SEP, ids)
  real = column < length
  return {
    "input_ids": np.where(real, ids, PAD).astype(np.int32),
    "token_type_ids": np.zeros((B, L), np.int32),
    "segment_ids": real.astype(np.int32),
    "example_weights": np.ones(B, np.float32),
  }


def sizes(task):
  """(discriminator, generator)."""
  described = json.loads(json.dumps(task.describe))
  return tuple(EncoderConfig(**described[k]) for k in ("encoder", "generator"))


# Parameters.


def test_the_embeddings_are_shared_and_projected_to_two_widths(task):
  params = jax.eval_shape(task.init, jax.random.key(0))
  assert set(params) == {
    "encoder",
    "discriminator_head",
    "generator",
    "mlm_head",
  }
  assert set(params["encoder"]) == {"embeddings", "project", "layers"}
  assert set(params["generator"]) == {"project", "layers"}
  shapes = jax.tree.map(lambda x: x.shape, params)
  assert shapes["encoder"]["project"]["kernel"] == (10, 24)
  assert shapes["generator"]["project"]["kernel"] == (10, 12)
  assert shapes["generator"]["layers"]["attention"]["qkv"]["kernel"] == (
    *(2, 12, 3),
    *(1, 12),  # 12 are not two heads of 8, so one of 12.
  )
  # The generator predicts with the shared table [256, 10].
  assert shapes["mlm_head"]["transform"]["kernel"] == (12, 10)
  assert shapes["discriminator_head"] == {
    "transform": {"kernel": (24, 24), "bias": (24,)},
    "dense": {"kernel": (24, 1), "bias": (1,)},
  }


def test_classifiers_are_to_read_cls_as_electra_s_do(task):
  assert sizes(task)[0].pooler == "gelu"


@pytest.mark.parametrize(
  ("model", "size", "expected"),
  [
    # (width, heads, mlp_width) as in google-research/electra, tables 1 and 6.
    ((256, 4, 1024, 128), 0.25, (64, 1, 256)),
    ((256, 4, 1024, 128), 1.0, (256, 4, 1024)),
    ((768, 12, 3072, 0), 0.33333, (256, 4, 1024)),  # As its default has it.
    ((1024, 16, 4096, 0), 0.25, (256, 4, 1024)),
  ],
)
def test_published_generators(model, size, expected):
  width, heads, mlp_width, embedding_width = model
  cfg = EncoderConfig(
    **{
      **dataclasses.asdict(_any_config()),
      "num_layers": 12,
      "width": width,
      "num_heads": heads,
      "mlp_width": mlp_width,
      "embedding_width": embedding_width,
    }
  )
  small = electra.generator_config(cfg, size=size, layers=1.0)
  assert (small.width, small.num_heads, small.mlp_width) == expected
  assert small.num_layers == 12
  assert small.embedding_size == cfg.embedding_size
  third = electra.generator_config(cfg, size=size, layers=1 / 3)
  assert third.num_layers == 4


def _any_config():
  model = make_config().model.to_dict()
  return EncoderConfig(vocab_size=V, **model)


# What is hidden, sampled and replaced.


def test_corrupt_masks_85_percent_and_draws_nothing_at_random(make_task):
  task = make_task(mask_rate=0.5)
  batch = jax.tree.map(lambda x: np.concatenate([x] * 50), make_batch())
  corrupted = jax.jit(task.corrupt)(batch, jax.random.key(1))
  changed = corrupted["input_ids"] != batch["input_ids"]
  assert set(np.unique(corrupted["input_ids"][changed])) == {MASK}
  chosen = corrupted["masked_weights"].sum()
  # Half of 13, 12, ... 6 tokens, rounded to even: 6 6 6 5 4 4 4 3.
  assert chosen == 50 * 38
  bound = 4 * math.sqrt(0.85 * 0.15 / chosen)
  assert changed.sum() / chosen == pytest.approx(0.85, abs=bound)
  assert corrupted["sample_bits"].shape == (400, 2)
  assert len(np.unique(corrupted["sample_bits"])) == 800


def test_replace_by_hand():
  batch = {
    # 11 was kept, 12 and 13 were masked; the last slot is not used.
    "input_ids": np.array([[CLS, 11, MASK, MASK, 14, SEP, PAD]]),
    "masked_positions": np.array([[3, 1, 2, 0]]),
    "masked_labels": np.array([[13, 11, 12, 0]]),
    "masked_weights": np.array([[1, 1, 1, 0]]),
  }
  replaced, labels = electra.replace(batch, np.array([[13, 9, 7, 99]]))
  np.testing.assert_array_equal(
    replaced["input_ids"], [[CLS, 9, 7, 13, 14, SEP, PAD]]
  )
  # The right guess at 3 is no fake; the kept token at 1 may become one.
  np.testing.assert_array_equal(labels, [[0, 1, 1, 0, 0, 0, 0]])


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_samples_follow_the_generator(temperature):
  # 3 slots of 4 tokens and one that is padding of the vocabulary.
  logits = np.array(
    [[0.0, 1.0, 2.0, -1.0, -1e9], [0, 0, 0, 0, -1e9], [3, -5, 0, 0, -1e9]]
  )
  n = 20_000
  bits = jax.random.bits(jax.random.key(0), (n, 2), jnp.uint32)
  drawn = jax.jit(electra.sample)(
    jnp.broadcast_to(jnp.float32(logits), (n, 3, 5)),
    {"sample_bits": bits},
    temperature,
  )
  for slot in range(3):
    p = np.exp(logits[slot] / temperature)
    p /= p.sum()
    share = np.bincount(drawn[:, slot], minlength=5) / n
    bound = 4.5 * np.sqrt(p * (1 - p) / n) + 1e-12
    assert (np.abs(share - p) <= bound).all(), (share, p)
  # Slots of a row are independent: both draw their largest.
  p = [np.exp(x / temperature) / np.exp(x / temperature).sum() for x in logits]
  both = np.mean((drawn[:, 0] == 2) & (drawn[:, 2] == 0))
  expected = p[0][2] * p[2][0]
  assert both == pytest.approx(expected, abs=4.5 * math.sqrt(0.25 / n))


# The loss.


def make_params(task):
  """Parameters with entries that nothing hides behind."""
  rng = np.random.default_rng(4)
  shapes = jax.eval_shape(task.init, jax.random.key(0))
  return jax.tree.map(
    lambda x: np.float32(0.3 * rng.standard_normal(x.shape)), shapes
  )


def jitted(task):
  return jax.jit(lambda *args: totals(task.loss(*args)), static_argnums=3)


def test_loss_by_its_parts(task):
  # The modules applied one by one, the sums in plain python.
  params = jax.device_get(make_params(task))
  # So that scores are from -2 to 2, not all but equal.
  dense = params["discriminator_head"]["dense"]
  dense["kernel"] *= 100
  dense["bias"] += np.float32(110.3)
  batch = {**make_batch()}
  batch["example_weights"] = np.float32([1, 1, 0, 1, 1, 1, 0, 1])
  batch = jax.device_get(task.corrupt(batch, jax.random.key(1)))
  terms, metrics = jitted(task)(params, batch, None, False)
  cfg, small = sizes(task)
  table = params["encoder"]["embeddings"]
  arrays = batch["token_type_ids"], batch["segment_ids"]
  seen = Encoder(small).apply(
    {"params": {**params["generator"], "embeddings": table}},
    batch["input_ids"],
    *arrays,
    train=False,
  )
  places = batch["masked_positions"]
  logits = MlmHead(small).apply(
    {"params": params["mlm_head"]},
    np.take_along_axis(np.asarray(seen), places[..., None], axis=1),
    table["token"]["embedding"],
  )
  sampled = np.asarray(electra.sample(logits, batch, 1.0))
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
  hidden = Encoder(cfg).apply(
    {"params": params["encoder"]}, ids, *arrays, train=False
  )
  head = params["discriminator_head"]
  x = np.asarray(hidden) @ head["transform"]["kernel"]
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
  # [CLS], [SEP] and all else of rows 13, 12, 10, 9, 8 and 6.
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


def test_an_untrained_model_knows_nothing(task):
  batch = task.corrupt(make_batch(), jax.random.key(1))
  params = jax.jit(task.init)(jax.random.key(0))
  _, metrics = jitted(task)(params, batch, None, False)
  means = {name: float(s / w) for name, (s, w) in metrics.items() if w}
  assert means["mlm_loss"] == pytest.approx(math.log(V), abs=0.05)
  assert means["discriminator_loss"] == pytest.approx(math.log(2), abs=0.05)


def slope(task, params, batch, term):
  @jax.jit
  @jax.grad
  def gradient(params):
    terms, _ = totals(task.loss(params, batch, jax.random.key(2), True))
    return terms[term][0]

  largest = jax.tree.map(lambda x: float(np.abs(x).max()), gradient(params))
  leaves = jax.tree_util.tree_flatten_with_path(largest)[0]
  return {
    jax.tree_util.keystr(path, simple=True, separator="/"): x
    for path, x in leaves
  }


def test_who_learns_from_what(task):
  params = make_params(task)
  batch = task.corrupt(make_batch(), jax.random.key(1))

  def of(slopes, *parts):
    return [x for path, x in slopes.items() if path.startswith(parts)]

  found = slope(task, params, batch, "discriminator")
  # Nothing comes back through the sampling.
  assert max(of(found, "generator/", "mlm_head/")) == 0
  assert min(of(found, "discriminator_head/")) > 0
  assert found["encoder/embeddings/token/embedding"] > 0
  assert found["encoder/layers/mlp/up/kernel"] > 0
  filled = slope(task, params, batch, "mlm")
  assert max(of(filled, "discriminator_head/", "encoder/layers/")) == 0
  assert filled["encoder/project/kernel"] == 0
  assert filled["generator/project/kernel"] > 0
  assert filled["encoder/embeddings/token/embedding"] > 0
  assert min(of(filled, "mlm_head/")) > 0


def test_each_encoder_drops_by_a_key_of_its_own(task, monkeypatch):
  keys = []

  def encode(cfg, params, batch, key, train):
    assert train
    keys.append(jax.random.key_data(key))
    return jnp.zeros((*batch["input_ids"].shape, cfg.width))

  monkeypatch.setattr(electra.masked_lm, "encode", encode)
  params = make_params(task)
  batch = task.corrupt(make_batch(), jax.random.key(1))

  def of_step(key):
    task.loss(params, batch, key, True)
    return keys

  generator, discriminator = jax.jit(of_step)(jax.random.key(2))
  assert not np.array_equal(generator, discriminator)


def test_filler_rows_count_nothing(task):
  params = make_params(task)
  batch = make_batch()
  batch["example_weights"][5:] = 0
  batch = jax.device_get(task.corrupt(batch, jax.random.key(1)))
  loss = jitted(task)
  whole, _ = loss(params, batch, None, False)
  alone, _ = loss(params, {k: v[:5] for k, v in batch.items()}, None, False)
  for name in ("mlm", "discriminator"):
    np.testing.assert_allclose(whole[name], alone[name], rtol=1e-5)


def test_microbatches_sample_the_same_tokens(make_task):
  task = make_task(make_config(dropout=0.0, attention_dropout=0.0))
  params = make_params(task)
  batch = task.corrupt(make_batch(), jax.random.key(1))

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


def test_flops_of_both_models(task):
  cfg, small = sizes(task)
  generator = flops.train_flops(small, L, num_predictions=2)  # 15% of 13.
  encoder = flops.train_flops(cfg, L, num_predictions=0)
  head = 6 * L * (24 * 24 + 24)
  assert task.flops(3) == B * (generator + encoder + head)


@pytest.mark.parametrize(
  ("options", "expected"),
  [
    ({"mask_rate": 0.0}, "objective.mask_rate=0.0"),
    ({"temperature": 0.0}, "objective.temperature=0.0 .*above 0"),
    ({"discriminator_weight": -1.0}, "discriminator_weight=-1.0 .*0 or more"),
    ({"generator_size": 0.0}, "objective.generator_size=0.0 .*above 0"),
    ({"generator_layers": 1.5}, "objective.generator_layers=1.5 .*at most 1"),
    (
      # 0.7 of 24 is 17, which two heads of 8 don't divide.
      {"generator_size": 0.7},
      "generator_size=0.7 of model.width=24 is 17, which 2 heads do not "
      "divide.*shared embedding.*generator_size=0.666667",
    ),
  ],
)
def test_wrong_options_are_named(make_task, options, expected):
  with pytest.raises(ConfigError, match=expected):
    make_task(**options)


def test_the_generator_fills_masks(task):
  # What fill-mask reads of a checkpoint: the tree that mlm_logits wants.
  params = make_params(task)
  generator = masked_lm.with_generator(params)
  _, small = sizes(task)
  batch = make_batch()
  hidden = masked_lm.encode(small, generator, batch, None, False)
  assert hidden.shape == (B, L, 12)
  table = generator["encoder"]["embeddings"]["token"]["embedding"]
  assert table is params["encoder"]["embeddings"]["token"]["embedding"]


# On real rows.


@pytest.fixture(scope="module")
def real(tiny):
  """(config, task) on the tiny corpus, at sizes that a mesh divides."""
  path, corpus = tiny
  config = overrides.load_config(str(path))
  made = config_lib.default("electra")
  for section in ("corpus", "tokenizer", "model", "data", "train"):
    made[section].update(config[section].to_dict())
  made.model.embedding_width = 8
  made.optimizer.update(learning_rate=3e-3, warmup_steps=1)
  options = made.objective.to_dict() | {"generator_size": 0.5}
  del options["name"]
  opened = store.open_corpus(pathlib.Path(corpus))
  return made, electra.make_task(
    made, opened, (0, 1), electra.Options(**options)
  )


def test_rows_are_two_segments_in_order(real):
  _, task = real
  for step in range(5):
    batch = task.batch_at("train", step)
    assert "nsp_labels" not in batch
    kinds, real_tokens = batch["token_type_ids"], batch["segment_ids"]
    assert (kinds.max(axis=1) == 1).all()
    assert (kinds <= real_tokens).all()
    assert set(np.unique(real_tokens)) <= {0, 1}


def test_packed_rows_give_a_finite_loss(tiny, real):
  config, _ = real
  options = config.objective.to_dict()
  options.update(generator_size=0.5, pack=True, short_share=0.9)
  del options["name"]
  opened = store.open_corpus(pathlib.Path(tiny[1]))
  task = electra.make_task(config, opened, (0, 1), electra.Options(**options))
  # Which rows are so short that they share one depends on the text, Python's.
  batches = (task.batch_at("train", step) for step in range(20))
  batch = next(b for b in batches if b["segment_ids"].max() > 1)
  params = make_params(task)
  batch = task.corrupt(batch, jax.random.key(0))
  terms, metrics = jitted(task)(params, batch, None, False)
  assert terms["discriminator"][1] == np.sum(batch["segment_ids"] > 0)
  assert all(np.isfinite(s) for s, _ in terms.values())
  assert metrics["replaced_share"][0] > 0
  # Counted is what the first batch attends to, whose rows may all be full.
  segments = task.batch_at("train", 0)["segment_ids"]
  is_full = (segments == segments[:, :1]).all()
  full = electra_flops_of_full_rows(task, config)
  assert task.flops(0) == full if is_full else 0 < task.flops(0) < full


def electra_flops_of_full_rows(task, config):
  cfg, small = sizes(task)
  L = config.data.length
  return config.data.batch_size * (
    flops.train_flops(small, L, num_predictions=6)
    + flops.train_flops(cfg, L, num_predictions=0)
    + 6 * L * (cfg.width**2 + cfg.width)
  )


def test_the_same_on_8_devices(real, capfd):
  (alone, _), (together, _) = (
    any_task.train_on(*real, axes, num_steps=2)
    for axes in ((1, 1, 1), (2, 2, 2))
  )
  for ours, expected in zip(together, alone, strict=True):
    # As many fakes: the same tokens were sampled.
    assert ours["replaced_share"] == expected["replaced_share"]
    assert ours["replaced_share"][0] > 0
    for name in ("loss", "mlm_loss", "discriminator_loss"):
      np.testing.assert_allclose(ours[name], expected[name], rtol=1e-5)
  assert "rematerialization" not in capfd.readouterr().err
