"""ELMo's objective: targets of both directions, its loss, its architecture."""

import json

import numpy as np
import pytest

from helpers import any_task, stub_objective
from helpers.stub_objective import B, L, V, jitted_loss, random_params
from maskedlm.core.errors import ConfigError
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import restored
from maskedlm.objectives import bilm


def make_config(**model):
  return stub_objective.make_config("bilm", dropout=0.0, **model)


def make_batch():
  """Returns rows of 13, 12, ... 6 tokens, each with two documents."""
  column, length = np.arange(L), (L - np.arange(B))[:, None]
  segments = np.where(column < length // 2, 1, 2) * (column < length)
  rng = np.random.default_rng(0)
  ids = np.where(column < length, rng.integers(5, V, (B, L)), 0)
  return {
    "input_ids": ids.astype(np.int32),
    "token_type_ids": np.zeros((B, L), np.int32),
    "segment_ids": segments.astype(np.int32),
    "positions": np.zeros((B, L), np.int32),
    "example_weights": np.ones(B, np.float32),
  }


@pytest.fixture
def make_task(monkeypatch):
  asked = stub_objective.stub_batches(
    monkeypatch,
    bilm.text_rows,
    "full_sentence_batches",
    batch_at=lambda split, step: make_batch(),
  )

  def make(model=None, **options):
    corpus = stub_objective.make_corpus()
    options = bilm.Options(**options)
    config = make_config(**(model or {}))
    return bilm.make_task(config, corpus, (1, 2), options), asked

  return make


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


def test_loss_by_its_parts(make_task):
  # All logits at once, summed in plain Python, direction by direction.
  task, _ = make_task(chunk=5)
  params, batch = random_params(task), make_batch()
  cfg = restored(json.loads(json.dumps(task.describe))["encoder"])
  hidden = np.float64(masked_lm.encode(cfg, params, batch, None, False))
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
  task, asked = make_task()
  assert asked["isolate_documents"]
  params, batch = random_params(task), make_batch()
  batch["segment_ids"] = np.minimum(batch["segment_ids"], 1)
  changed = {**batch, "input_ids": batch["input_ids"].copy()}
  changed["input_ids"][0, 6] += 1
  column = np.arange(L)
  unseen = np.stack([column < 5, column > 7])
  label = np.stack([column == 5, column == 7])

  def loss(batch, counted):
    made = dict(task.corrupt(batch, None))
    rows = np.arange(B)[:, None, None] == 0
    made["next_weights"] = made["next_weights"] * (rows & counted)
    return float(jitted_loss(task)(params, made, None, False)[0]["lm"][0])

  assert loss(changed, unseen) == loss(batch, unseen)
  assert loss(changed, label) != loss(batch, label)


def test_split_over_8_devices_it_is_the_same(make_task):
  task, _ = make_task(chunk=4)
  any_task.check_split_over_8_devices(task, random_params(task), make_batch())


def test_every_parameter_learns(make_task):
  task, _ = make_task({"type_vocab_size": 0})
  any_task.check_every_parameter_learns(task, make_batch())


def test_flops_are_those_of_the_matmuls(make_task):
  task, _ = make_task()
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
    make_task(model)
