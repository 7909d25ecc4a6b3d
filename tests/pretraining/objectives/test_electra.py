"""ELECTRA's parameters, masks and samples, and its rows on real text."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.stub_electra import make_batch, make_config, make_task, sizes
from helpers.stub_objective import (
  CLS,
  MASK,
  PAD,
  SEP,
  B,
  L,
  V,
)
from maskedlm.modeling import flops
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.pretraining.objectives import electra


@pytest.fixture
def task(monkeypatch):
  return make_task(monkeypatch)


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
    *(1, 12),  # One head, as 8 does not divide 12.
  )
  # The generator predicts with the shared table [256, 10].
  assert shapes["mlm_head"]["transform"]["kernel"] == (12, 10)
  assert shapes["discriminator_head"] == {
    "transform": {"kernel": (24, 24), "bias": (24,)},
    "dense": {"kernel": (24, 1), "bias": (1,)},
  }


def test_the_pooler_of_classifiers_is_electra_s(task):
  assert sizes(task)[0].pooler == "gelu"


@pytest.mark.parametrize(
  ("model", "size", "expected"),
  [
    # (width, heads, mlp_width) as in google-research/electra, tables 1 and 6.
    ((256, 4, 1024, 128), 0.25, (64, 1, 256)),
    ((256, 4, 1024, 128), 1.0, (256, 4, 1024)),
    ((768, 12, 3072, 0), 0.33333, (256, 4, 1024)),  # The default.
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


@pytest.mark.parametrize(
  ("heads", "shared", "expected"),
  # 18 / 3 = 6 heads: groups of 3 stay. 12 / 3 = 4 heads, in groups of 4.
  [((18), 6, (6, 2)), (12, 2, (4, 1)), (12, 0, (4, 0))],
)
def test_a_generator_shares_keys_as_its_discriminator(heads, shared, expected):
  cfg = dataclasses.replace(
    _any_config(), width=36, num_heads=heads, num_kv_heads=shared
  )
  small = electra.generator_config(cfg, size=1 / 3, layers=1.0)
  assert (small.num_heads, small.num_kv_heads) == expected


def _any_config():
  model = make_config().model.to_dict()
  return EncoderConfig(vocab_size=V, **model)


# Masks, samples and replacements.


def test_corrupt_masks_85_percent_and_replaces_none_at_random(monkeypatch):
  task = make_task(monkeypatch, mask_rate=0.5)
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
    # 11 was kept, 12 and 13 were masked; the last prediction is unused.
    "input_ids": np.array([[CLS, 11, MASK, MASK, 14, SEP, PAD]]),
    "masked_positions": np.array([[3, 1, 2, 0]]),
    "masked_labels": np.array([[13, 11, 12, 0]]),
    "masked_weights": np.array([[1, 1, 1, 0]]),
  }
  replaced, labels = electra.replace(batch, np.array([[13, 9, 7, 99]]))
  np.testing.assert_array_equal(
    replaced["input_ids"], [[CLS, 9, 7, 13, 14, SEP, PAD]]
  )
  # The correct sample at 3 is no fake; the one at 1, which was kept, is.
  np.testing.assert_array_equal(labels, [[0, 1, 1, 0, 0, 0, 0]])


def test_samples_follow_the_generator():
  # 3 predictions of 4 tokens and one id that pads the vocabulary.
  logits = np.array(
    [[0.0, 1.0, 2.0, -1.0, -1e9], [0, 0, 0, 0, -1e9], [3, -5, 0, 0, -1e9]]
  )
  n = 20_000
  bits = jax.random.bits(jax.random.key(0), (n, 2), jnp.uint32)
  drawn = jax.jit(electra.sample)(
    jnp.broadcast_to(jnp.float32(logits), (n, 3, 5)),
    {"sample_bits": bits},
  )
  for slot in range(3):
    p = np.exp(logits[slot])
    p /= p.sum()
    share = np.bincount(drawn[:, slot], minlength=5) / n
    bound = 4.5 * np.sqrt(p * (1 - p) / n) + 1e-12
    assert (np.abs(share - p) <= bound).all(), (share, p)
  # Predictions of a row are independent: two draw their largest together.
  p = [np.exp(x) / np.exp(x).sum() for x in logits]
  both = np.mean((drawn[:, 0] == 2) & (drawn[:, 2] == 0))
  expected = p[0][2] * p[2][0]
  assert both == pytest.approx(expected, abs=4.5 * math.sqrt(0.25 / n))


def test_flops_of_both_models(task):
  cfg, small = sizes(task)
  generator = flops.train_flops(small, L, num_predictions=2)  # 15% of 13.
  encoder = flops.train_flops(cfg, L, num_predictions=0)
  head = 6 * L * (24 * 24 + 24)
  assert task.flops(3) == B * (generator + encoder + head)
