"""The causal baseline and ELMo's: targets, the tokens they see, losses."""

import dataclasses
import functools
import json

import jax
import numpy as np
import pytest

from helpers import stub_objective
from helpers.stub_objective import B, L, V, jitted_loss, random_params
from maskedlm.core.errors import ConfigError
from maskedlm.data.batches import text_rows
from maskedlm.modeling import flops, masked_lm
from maskedlm.modeling.architecture import restored
from maskedlm.modeling.encoder import Encoder, EncoderConfig
from maskedlm.modeling.heads import MlmHead
from maskedlm.pretraining.objectives import bilm, causal
from maskedlm.training.step import totals


@pytest.fixture
def make_task(monkeypatch):
  """Returns the function (options) -> a Task, and the arguments of its rows."""
  asked = stub_objective.stub_batches(
    monkeypatch,
    text_rows,
    "full_sentence_batches",
    batch_at=lambda split, step: make_batch(),
  )

  def make(objective=causal, model=None, chunk=64, **options):
    monkeypatch.setattr(causal, "CHUNK", chunk)
    config = stub_objective.make_config(
      objective.__name__.split(".")[-1],
      **{"dropout": 0.0, "attention_dropout": 0.0, **(model or {})},
    )
    options = objective.Options(**options)
    corpus = stub_objective.make_corpus()
    return objective.make_task(config, corpus, (1, 2), options), asked

  return make


def make_batch():
  """Returns rows of 13, 12, ... 6 tokens, each with two documents."""
  rng = np.random.default_rng(0)
  column, length = np.arange(L), (L - np.arange(B))[:, None]
  first = length // 2
  segments = np.where(column < first, 1, 2) * (column < length)
  positions = np.where(column < first, column, column - first)
  batch = {
    "input_ids": np.where(column < length, rng.integers(5, V, (B, L)), 0),
    "token_type_ids": np.zeros((B, L)),
    "segment_ids": segments,
    "positions": np.where(column < length, positions, 0),
  }
  batch = {name: x.astype(np.int32) for name, x in batch.items()}
  return {**batch, "example_weights": np.ones(B, np.float32)}


def test_targets_by_hand():
  batch = {
    "input_ids": np.array([[2, 11, 12, 3, 13, 3, 0], [2, 14, 3, 0, 0, 0, 0]]),
    "segment_ids": np.array([[1, 1, 1, 1, 2, 2, 0], [1, 1, 1, 0, 0, 0, 0]]),
    "example_weights": np.array([1.0, 1.0]),
  }
  made = causal.targets(batch, "left_to_right")
  np.testing.assert_array_equal(
    made["next_labels"][0], [11, 12, 3, 13, 3, 0, 0]
  )
  # Token 13 belongs to another segment; padding predicts nothing.
  np.testing.assert_array_equal(
    made["next_weights"], [[1, 1, 1, 0, 1, 0, 0], [1, 1, 0, 0, 0, 0, 0]]
  )
  np.testing.assert_array_equal(made["input_ids"], batch["input_ids"])
  mirrored = causal.targets(batch, "right_to_left")
  np.testing.assert_array_equal(
    mirrored["next_labels"][0], [0, 2, 11, 12, 3, 13, 3]
  )
  # Position 4 begins another segment; nothing is to the left of position 0.
  np.testing.assert_array_equal(
    mirrored["next_weights"], [[0, 1, 1, 1, 0, 1, 0], [0, 1, 1, 0, 0, 0, 0]]
  )
  batch["example_weights"] = np.array([1.0, 0.0])
  for direction in causal.NEXT:
    assert causal.targets(batch, direction)["next_weights"].sum() == 4


def test_chunks_by_hand():
  x = np.arange(10).reshape(2, 5)
  ours = causal.chunks(x, 2)
  expected = [[[0, 1], [5, 6]], [[2, 3], [7, 8]], [[4, 0], [9, 0]]]
  np.testing.assert_array_equal(ours, expected)
  np.testing.assert_array_equal(causal.chunks(x, 99), x[None])


def test_loss_by_its_parts(make_task):
  # All logits at once, summed in plain Python.
  task, _ = make_task(chunk=5)
  params = random_params(task)
  batch = jax.device_get(task.corrupt(make_batch(), None))
  cfg = EncoderConfig(**task.describe["encoder"])
  arrays = ("input_ids", "token_type_ids", "segment_ids", "positions")
  hidden = jax.jit(functools.partial(Encoder(cfg).apply, train=False))(
    {"params": params["encoder"]}, *(batch[k] for k in arrays)
  )
  logits = jax.jit(MlmHead(cfg).apply)(
    {"params": params["mlm_head"]},
    hidden,
    params["encoder"]["embeddings"]["token"]["embedding"],
  )
  logits = np.float64(logits)
  total = correct = count = 0
  for b in range(B):
    for i in range(L - 1):
      segments = batch["segment_ids"][b]
      if not segments[i] or segments[i] != segments[i + 1]:
        continue
      label = batch["input_ids"][b, i + 1]
      total += np.log(np.exp(logits[b, i]).sum()) - logits[b, i, label]
      correct += logits[b, i].argmax() == label
      count += 1
  # Each row has two documents, whose last tokens predict nothing.
  assert count == 13 + 12 + 11 + 10 + 9 + 8 + 7 + 6 - 2 * B
  terms, metrics = jitted_loss(task)(params, batch, None, False)
  assert set(terms) == {"lm"}
  np.testing.assert_allclose(terms["lm"], (total, count), rtol=1e-5)
  np.testing.assert_allclose(metrics["lm_loss"], (total, count), rtol=1e-5)
  np.testing.assert_allclose(metrics["lm_accuracy"], (correct, count))


def test_chunks_change_neither_loss_nor_gradient(make_task):
  params = random_params(make_task()[0])
  batch = causal.targets(make_batch(), "left_to_right")

  def both(chunk):
    task, _ = make_task(chunk=chunk)

    def loss(params):
      total, count = totals(task.loss(params, batch, None, False))[0]["lm"]
      return total / count

    return jax.jit(jax.value_and_grad(loss))(params)

  value, gradient = both(13)
  ours, slope = both(4)
  np.testing.assert_allclose(ours, value, rtol=1e-6)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
    slope,
    gradient,
  )


def test_no_logits_of_a_whole_row_exist(make_task):
  task, _ = make_task(chunk=4)
  params = random_params(task)
  batch = task.corrupt(make_batch(), None)

  def loss(params):
    return totals(task.loss(params, batch, jax.random.key(0), True))[0]["lm"][0]

  text = str(jax.make_jaxpr(jax.grad(loss))(params))
  assert f"f32[{B * 4},256]" in text  # A chunk's, flattened.
  n = -(-L // 4)  # Chunks; the backward pass keeps no logits of them.
  for whole in (
    f"{B * L},256]",
    f"{B},{L},256]",
    f"{B},{4 * n},256]",
    f"[{n},{B * 4},256]",
  ):
    assert whole not in text


@pytest.mark.parametrize(
  ("direction", "changed", "unseen", "seen"),
  [
    # If token 9 of row 0 changes, the predictions at positions 0 to 7 don't;
    ("left_to_right", 9, range(8), range(10)),
    # if token 3 does, those at positions 5 to 12 don't.
    ("right_to_left", 3, range(5, L), range(3, L)),
  ],
)
def test_tokens_beyond_the_target_are_not_seen(
  make_task, direction, changed, unseen, seen
):
  task, _ = make_task(direction=direction)
  reads = EncoderConfig(**task.describe["encoder"]).reads
  assert reads == {"left_to_right": "left", "right_to_left": "right"}[direction]
  params = random_params(task)
  batch = make_batch()
  batch["segment_ids"] = np.minimum(batch["segment_ids"], 1)
  other = {**batch, "input_ids": batch["input_ids"].copy()}
  other["input_ids"][0, changed] += 1
  compiled = jitted_loss(task)

  def loss(batch, places):
    made = jax.device_get(task.corrupt(batch, None))
    counted = (np.arange(B)[:, None] == 0) & np.isin(np.arange(L), places)
    made["next_weights"] = made["next_weights"] * counted
    return float(compiled(params, made, None, False)[0]["lm"][0])

  assert loss(other, unseen) == loss(batch, unseen)
  assert loss(other, seen) != loss(batch, seen)


def test_checkpoints_record_that_the_encoder_is_causal(make_task):
  task, asked = make_task(isolate_documents=True)
  described = json.loads(json.dumps(task.describe))
  cfg = EncoderConfig(**described["encoder"])
  assert cfg.causal
  assert asked["isolate_documents"]
  # The first batch has documents of 6 and 7, 6 and 6, ... 3 and 3 tokens.
  pairs = sum((n // 2) ** 2 + (n - n // 2) ** 2 for n in range(6, 14)) / B
  expected = flops.train_flops(cfg, L, num_predictions=L, attended=pairs)
  assert task.flops(0) == pytest.approx(B * expected)
  plain = dataclasses.replace(cfg, causal=False)
  assert expected < flops.train_flops(
    plain, L, num_predictions=L, attended=pairs
  )


# ELMo's objective, of both directions.


def test_targets_are_both_neighbours():
  batch = {
    "input_ids": np.array([[2, 11, 12, 3, 13, 3, 0]]),
    "segment_ids": np.array([[1, 1, 1, 1, 2, 2, 0]]),
    "example_weights": np.array([1.0]),
  }
  made = bilm.targets(batch)
  np.testing.assert_array_equal(
    made["next_labels"],
    [[[11, 12, 3, 13, 3, 0, 0], [0, 2, 11, 12, 3, 13, 3]]],
  )
  np.testing.assert_array_equal(
    made["next_weights"],
    [[[1, 1, 1, 0, 1, 0, 0], [0, 1, 1, 1, 0, 1, 0]]],
  )


def test_bilm_loss_by_its_parts(make_task):
  # All logits at once, summed in plain Python, direction by direction.
  task, _ = make_task(bilm, chunk=5)
  params, batch = random_params(task), make_batch()
  cfg = restored(json.loads(json.dumps(task.describe))["encoder"])
  encode = jax.jit(masked_lm.encode, static_argnums=(0, 4))
  hidden = np.float64(encode(cfg, params, batch, None, False))
  table = masked_lm.token_embedding(params["encoder"])[: cfg.vocab_size]
  bias = params["bilm_head"]["bias"][: cfg.vocab_size]
  W = cfg.width // 2
  sums, counts = np.zeros(2), np.zeros(2)
  for d, (half, step) in enumerate(
    ((hidden[..., :W], 1), (hidden[..., W:], -1))
  ):
    logits = half @ table.T + bias
    for b in range(B):
      for i in range(max(0, -step), L - max(0, step)):
        segments = batch["segment_ids"][b]
        if not segments[i] or segments[i] != segments[i + step]:
          continue
        label = batch["input_ids"][b, i + step]
        sums[d] += np.log(np.exp(logits[b, i]).sum()) - logits[b, i, label]
        counts[d] += 1
  terms, metrics = jitted_loss(task)(
    params, task.corrupt(batch, None), None, False
  )
  assert set(terms) == {"lm"}
  np.testing.assert_allclose(terms["lm"], (sums.sum(), counts.sum()), rtol=1e-5)
  for name, d in (("left_to_right_loss", 0), ("right_to_left_loss", 1)):
    np.testing.assert_allclose(metrics[name], (sums[d], counts[d]), rtol=1e-5)


def test_a_prediction_does_not_see_its_token(make_task):
  # If token 6 of row 0 changes, left to right nothing changes up to the
  # prediction of token 5, and right to left down to that of token 7.
  task, asked = make_task(bilm)
  assert asked["isolate_documents"]
  params, batch = random_params(task), make_batch()
  batch["segment_ids"] = np.minimum(batch["segment_ids"], 1)
  changed = {**batch, "input_ids": batch["input_ids"].copy()}
  changed["input_ids"][0, 6] += 1
  column = np.arange(L)
  unseen = np.stack([column < 5, column > 7])
  label = np.stack([column == 5, column == 7])
  compiled = jitted_loss(task)

  def loss(batch, counted):
    made = dict(task.corrupt(batch, None))
    rows = np.arange(B)[:, None, None] == 0
    made["next_weights"] = made["next_weights"] * (rows & counted)
    return float(compiled(params, made, None, False)[0]["lm"][0])

  assert loss(changed, unseen) == loss(batch, unseen)
  assert loss(changed, label) != loss(batch, label)


def test_flops_are_those_of_the_matmuls(make_task):
  task, _ = make_task(bilm)
  # In each of 2 layers and directions, W = 12 and 40 cells: inputs and outputs
  # of the step before to 4 gates, and a projection.
  weights = 2 * 2 * (12 * 160 + 12 * 160 + 40 * 12)
  softmax = 2 * 12 * V
  assert task.flops(0) == B * 6 * L * (weights + softmax)


@pytest.mark.parametrize(
  ("model", "message"),
  [
    ({"width": 27}, "model.width=27.*even; set it to 28"),
    ({"embedding_width": 24}, "model.embedding_width=24.*leave it 0"),
  ],
)
def test_widths_that_cannot_be_split_are_refused(make_task, model, message):
  with pytest.raises(ConfigError, match=message):
    make_task(bilm, model)
