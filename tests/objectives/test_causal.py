"""The causal baseline: its targets, the tokens it sees, its loss."""

import dataclasses
import json
import math

import jax
import numpy as np
import pytest

from helpers import any_task, stub_objective
from helpers.stub_objective import B, L, V, jitted_loss, random_params
from maskedlm.core.errors import ConfigError
from maskedlm.modeling import flops
from maskedlm.modeling.encoder import Encoder, EncoderConfig
from maskedlm.modeling.heads import MlmHead
from maskedlm.objectives import causal
from maskedlm.training.step import totals


def make_config():
  return stub_objective.make_config(
    "causal", dropout=0.0, attention_dropout=0.0
  )


@pytest.fixture
def make_task(monkeypatch):
  """Returns the function (options) -> a Task, and the arguments of its rows."""
  asked = stub_objective.stub_batches(
    monkeypatch,
    causal.text_rows,
    "full_sentence_batches",
    batch_at=lambda split, step: make_batch(),
  )

  def make(**options):
    options = causal.Options(**options)
    corpus = stub_objective.make_corpus()
    return causal.make_task(make_config(), corpus, (1, 2), options), asked

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
  hidden = Encoder(cfg).apply(
    {"params": params["encoder"]}, *(batch[k] for k in arrays), train=False
  )
  logits = MlmHead(cfg).apply(
    {"params": params["lm_head"]},
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
  for chunk in (4, 100):
    ours, slope = both(chunk)
    np.testing.assert_allclose(ours, value, rtol=1e-6)
    jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
      slope,
      gradient,
    )
  # Every parameter learns, except the key's bias, which softmax ignores.
  gradient["encoder"]["layers"]["attention"]["qkv"]["bias"] = np.ones(1)
  assert min(np.abs(x).max() for x in jax.tree.leaves(gradient)) > 0


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


def test_later_tokens_are_not_seen(make_task):
  # If token 9 of row 0 changes, the predictions at positions 0 to 7 don't.
  task, _ = make_task()
  params = random_params(task)
  batch = make_batch()
  batch["segment_ids"] = np.minimum(batch["segment_ids"], 1)
  changed = {**batch, "input_ids": batch["input_ids"].copy()}
  changed["input_ids"][0, 9] += 1

  def loss(batch, upto):
    made = jax.device_get(task.corrupt(batch, None))
    weights = np.zeros_like(made["next_weights"])
    weights[0, :upto] = 1
    made["next_weights"] = weights
    return float(totals(task.loss(params, made, None, False))[0]["lm"][0])

  assert loss(changed, 8) == loss(batch, 8)
  assert loss(changed, 10) != loss(batch, 10)


def test_from_right_to_left_earlier_tokens_are_not_seen(make_task):
  # If token 3 of row 0 changes, the predictions at positions 5 to 12 don't.
  task, _ = make_task(direction="right_to_left")
  params = random_params(task)
  batch = make_batch()
  batch["segment_ids"] = np.minimum(batch["segment_ids"], 1)
  changed = {**batch, "input_ids": batch["input_ids"].copy()}
  changed["input_ids"][0, 3] += 1
  made = {}
  for name, tokens in (("before", batch), ("after", changed)):
    for begin in (5, 3):
      some = jax.device_get(task.corrupt(tokens, None))
      counted = (np.arange(B)[:, None] == 0) & (np.arange(L) >= begin)
      some["next_weights"] = some["next_weights"] * counted
      terms = jitted_loss(task)(params, some, None, False)[0]
      made[name, begin] = float(terms["lm"][0])
  assert made["before", 5] == made["after", 5]
  assert made["before", 3] != made["after", 3]
  assert EncoderConfig(**task.describe["encoder"]).reads == "right"


def test_an_untrained_model_knows_nothing(make_task):
  task, _ = make_task()
  params = jax.jit(task.init)(jax.random.key(0))
  assert set(params) == {"encoder", "lm_head"}
  batch = task.corrupt(make_batch(), None)
  total, count = totals(task.loss(params, batch, None, False))[0]["lm"]
  assert total / count == pytest.approx(math.log(V), abs=0.05)


def test_split_over_8_devices_it_is_the_same(make_task):
  task, _ = make_task(chunk=4)
  any_task.check_split_over_8_devices(task, random_params(task), make_batch())


def test_checkpoints_record_that_the_encoder_is_causal(make_task):
  task, asked = make_task(isolate_documents=True)
  described = json.loads(json.dumps(task.describe))
  cfg = EncoderConfig(**described["encoder"])
  assert cfg.causal
  assert not make_config().model.causal
  assert asked["isolate_documents"]
  # The first batch has documents of 6 and 7, 6 and 6, ... 3 and 3 tokens.
  pairs = sum((n // 2) ** 2 + (n - n // 2) ** 2 for n in range(6, 14)) / B
  expected = flops.train_flops(cfg, L, num_predictions=L, attended=pairs)
  assert task.flops(0) == pytest.approx(B * expected)
  plain = dataclasses.replace(cfg, causal=False)
  assert expected < flops.train_flops(
    plain, L, num_predictions=L, attended=pairs
  )


def test_an_empty_chunk_is_refused(make_task):
  with pytest.raises(ConfigError, match=r"objective.chunk=0 .*1 or more"):
    make_task(chunk=0)
