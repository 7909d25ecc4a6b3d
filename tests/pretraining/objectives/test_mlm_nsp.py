"""BERT's objective: parameters, masks, losses, and the batches asked for."""

import math

import jax
import numpy as np
import pytest

from helpers.stub_objective import (
  CLS,
  PAD,
  SEP,
  B,
  L,
  V,
  compiled,
  jitted_loss,
  make_config,
  make_corpus,
  random_params,
  stub_batches,
)
from maskedlm.core.errors import ConfigError
from maskedlm.modeling import masked_lm
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.pretraining.objectives import mlm_nsp


def make_task(monkeypatch, config=None, **options):
  asked = stub_batches(monkeypatch, mlm_nsp.pair_rows, "nsp_batches")
  config = config or make_config("mlm_nsp")
  options = mlm_nsp.Options(**options)
  task = mlm_nsp.make_task(config, make_corpus(), (1, 2), options)
  return compiled(task), asked


def make_batch(num_rows=B):
  """Rows of 13, 12, 11, ... real tokens."""
  rng = np.random.default_rng(0)
  column, length = np.arange(L), (L - np.arange(num_rows))[:, None]
  ids = rng.integers(5, V, (num_rows, L))
  ids = np.where(column == 0, CLS, ids)
  ids = np.where((column == length // 2) | (column == length - 1), SEP, ids)
  real = column < length
  batch = {
    "input_ids": np.where(real, ids, PAD),
    "token_type_ids": real & (column > length // 2),
    "segment_ids": real,
    "nsp_labels": rng.integers(0, 2, num_rows),
  }
  batch = {name: x.astype(np.int32) for name, x in batch.items()}
  return {**batch, "example_weights": np.ones(num_rows, np.float32)}


def test_nsp_by_hand(monkeypatch):
  """tests/modeling/test_gradient.py compares it with plain numpy."""
  task, _ = make_task(monkeypatch)
  params = random_params(task)
  head = params["nsp_head"]["dense"]  # It says 1 with odds of 3 to 1.
  head["kernel"], head["bias"] = 0 * head["kernel"], np.log([1.0, 3.0])
  batch = make_batch()
  batch["nsp_labels"] = np.int32([1, 0, 1, 1, 1, 0, 0, 1])
  batch["example_weights"] = np.float32([1, 1, 0, 1, 1, 1, 0, 1])
  batch = task.corrupt(batch, jax.random.key(1))
  terms, metrics = jitted_loss(task)(params, batch, None, False)
  # 15% of 13, 12, 10, 9, 8 and 6 tokens are 1.95, 1.8, 1.5, 1.35, 1.2 and 0.9.
  assert terms["mlm"][1] == 2 + 2 + 2 + 1 + 1 + 1
  total = 4 * math.log(4 / 3) + 2 * math.log(4)
  np.testing.assert_allclose(terms["nsp"], (total, 6), rtol=1e-5)
  np.testing.assert_allclose(metrics["nsp_loss"], (total, 6), rtol=1e-5)
  np.testing.assert_allclose(metrics["nsp_accuracy"], (4, 6))


def test_nsp_from_the_raw_vector_of_cls(monkeypatch):
  """Equation 11.10 of Jurafsky & Martin, W_NSP z_CLS, in numpy."""
  task, _ = make_task(monkeypatch, pooler=False)
  params = random_params(task)
  assert set(params) == {"encoder", "mlm_head", "nsp_head"}
  batch = task.corrupt(make_batch(), jax.random.key(1))
  cfg = EncoderConfig(**task.describe["encoder"])
  encode = jax.jit(masked_lm.encode, static_argnums=(0, 4))
  hidden = np.float64(encode(cfg, params, batch, None, False))
  head = params["nsp_head"]["dense"]
  logits = hidden[:, 0] @ np.float64(head["kernel"]) + head["bias"]
  chosen = logits[np.arange(B), batch["nsp_labels"]]
  total = np.sum(np.log(np.exp(logits).sum(1)) - chosen)
  terms, _ = jitted_loss(task)(params, batch, None, False)
  np.testing.assert_allclose(terms["nsp"], (total, B), rtol=1e-5)


def test_heldout_rows_can_have_another_mask_rate(monkeypatch):
  task, _ = make_task(monkeypatch, mask_rate=0.45, heldout_mask_rate=0.15)
  train, heldout = (
    corrupt(make_batch(), jax.random.key(1))["masked_weights"].sum(1).tolist()
    for corrupt in (task.corrupt, jax.jit(task.measured[0][0]))
  )
  # 45% of 13 down to 6 tokens are 5.85, 5.4, 4.95, 4.5, ... 2.7.
  assert train == [6, 5, 5, 4, 4, 4, 3, 3]
  assert heldout == [2, 2, 2, 2, 1, 1, 1, 1]


def test_corrupt_keeps_the_rest_of_the_batch(monkeypatch):
  task, _ = make_task(monkeypatch, mask_rate=0.3)
  batch = make_batch()
  corrupted = jax.jit(task.corrupt)(batch, jax.random.key(2))
  assert set(corrupted) - set(batch) == {
    "masked_positions",
    "masked_labels",
    "masked_weights",
  }
  for name in set(batch) - {"input_ids"}:
    np.testing.assert_array_equal(corrupted[name], batch[name])
  assert corrupted["masked_positions"].shape == (B, 4)  # 3.9 rounded up.
  np.testing.assert_array_equal(
    np.isin(corrupted["input_ids"], [PAD, CLS, SEP]),
    np.isin(batch["input_ids"], [PAD, CLS, SEP]),
  )


def test_sentence_order_has_its_own_batches(monkeypatch):
  asked = stub_batches(
    monkeypatch, mlm_nsp.pair_rows, "sop_batches", num_heldout=5
  )
  task, _ = make_task(monkeypatch, pairs="sop", pack=True)
  assert task.num_heldout_batches == 5
  assert asked["pack"]


def test_random_tokens_by_frequency_or_uniform(monkeypatch):
  # All tokens are replaced at random. Ids 5..130 have the count id % 7 + 1 (18
  # ids of each count, mean 4): those of count 7 are 1/4 of all, or 1/7.
  ids = np.full((256, L), 8, np.int32)
  batch = {
    "input_ids": ids,
    "segment_ids": np.ones_like(ids),
    "example_weights": np.ones(256, np.float32),
  }
  options = {"mask_rate": 1.0, "mask_share": 0.0, "random_share": 1.0}
  for name, share in (("unigram", 1 / 4), ("uniform", 1 / 7)):
    task, _ = make_task(monkeypatch, random_tokens=name, **options)
    drawn = np.asarray(task.corrupt(batch, jax.random.key(0))["input_ids"])
    assert drawn.min() >= 5
    assert drawn.max() <= 130
    bound = 5 * math.sqrt(share * (1 - share) / drawn.size)
    assert np.mean(drawn % 7 == 6) == pytest.approx(share, abs=bound)


def test_rows_longer_than_the_positions_are_refused(monkeypatch):
  config = make_config("mlm_nsp")
  config.data.length = 18
  with pytest.raises(ConfigError, match=r"data\.length=18"):
    make_task(monkeypatch, config)
