"""Masks that follow what is hard: draws, counts and weights by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import stub_objective
from helpers.stub_objective import B, L, V, random_params
from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError
from maskedlm.core.task import NOTHING, OBSERVED
from maskedlm.data.batches import text_rows
from maskedlm.modeling.masking import adaptive, tokens
from maskedlm.modeling.masking.masking import Masking
from maskedlm.pretraining.objectives import roberta
from maskedlm.training import sharding


def test_weights_by_hand():
  # Types: always right, half of the time, never seen (as half), always wrong.
  right = np.float32([9, 2, 0, 0])
  wrong = np.float32([0, 2, 0, 19])
  old = np.float32([1, 1, 2, 0])
  made = adaptive.new_weights(old, right, wrong, mask_rate=0.4)
  # Shares of errors: 1 - 9.5 / 10, 1 - 2.5 / 5, 1 - 0.5 / 1, 1 - 0.5 / 20.
  moved = 0.2 * old + 0.8 * np.array([0.05, 0.5, 0.5, 0.975])
  np.testing.assert_allclose(made, moved / moved.mean(), rtol=1e-6)
  easy = adaptive.new_weights(
    np.float32([0, 1]), np.float32([999, 0]), np.float32([0, 0]), mask_rate=0.1
  )
  # 0.8 * 0.0005 is less than the least weight, 0.005 / 0.1.
  np.testing.assert_allclose(easy / easy[1], [0.05 / 0.6, 1], rtol=1e-6)


def test_weights_change_when_an_update_is_due():
  masks = Masking(3, lambda batch, key, weights: weights)
  carried = adaptive.carry(masks, 2, every=3, mask_rate=0.5)
  state = carried.init()
  right, wrong = jnp.float32([3, 0]), jnp.float32([0, 1])
  for step in (1, 2):
    state = carried.update(state, {"right": right, "wrong": wrong}, step)
    np.testing.assert_array_equal(state["weights"], [1, 1])
    np.testing.assert_array_equal(state["right"], [3 * step, 0])
  state = carried.update(state, {"right": right, "wrong": wrong}, 3)
  # 9 of 9 right, 3 of 3 wrong: 0.05 and 0.875 of errors.
  moved = 0.2 + 0.8 * np.array([0.05, 0.875])
  np.testing.assert_allclose(state["weights"], moved / moved.mean(), rtol=1e-6)
  assert not np.any(state["right"]) and not np.any(state["wrong"])
  np.testing.assert_array_equal(
    carried.corrupt(state, None, None), state["weights"]
  )


def test_draws_follow_the_weights():
  rows = 4_000
  candidates = np.tile([True, True, False, True], (rows, 1))
  weights = np.tile(np.float32([1, 2, 50, 5]), (rows, 1))
  positions, used = tokens.choose_tokens(
    jax.random.key(0),
    candidates,
    np.full(rows, 2),
    num_predictions=3,
    weights=weights,
  )
  assert used.sum() == 2 * rows
  assert not (np.asarray(positions)[:, :2] == 2).any()
  first = np.bincount(positions[:, 0], minlength=4) / rows
  np.testing.assert_allclose(first, [1 / 8, 2 / 8, 0, 5 / 8], atol=0.03)
  # Left out: 0 is last in 2/8 * 5/6 + 5/8 * 2/3.
  second = np.asarray(positions)[:, :2]
  left_out = 1 - np.mean((second == 0).any(axis=1))
  assert left_out == pytest.approx(2 / 8 * 5 / 6 + 5 / 8 * 2 / 3, abs=0.03)


def test_counts_by_hand_and_split_over_8_devices():
  rng = np.random.default_rng(0)
  batch = {
    "masked_labels": rng.integers(0, 7, (16, 5)),
    "masked_weights": np.float32(rng.random((16, 5)) < 0.7),
  }
  correct = rng.random((16, 5)) < 0.5
  expected = np.zeros((2, 7))
  for label, weight, is_right in zip(
    *(x.ravel() for x in (*batch.values(), correct)), strict=True
  ):
    expected[0 if is_right else 1, label] += weight
  mesh = sharding.make_mesh(defaults.default().mesh)
  assert mesh.size == 8
  placed = jax.device_put((correct, batch), sharding.rows(mesh))
  for arrays in ((correct, batch), placed):
    made = jax.jit(lambda c, b: adaptive.observe(c, b, 7))(*arrays)
    np.testing.assert_array_equal(made["right"], expected[0])
    np.testing.assert_array_equal(made["wrong"], expected[1])


@pytest.fixture
def make_task(monkeypatch):
  stub_objective.stub_batches(monkeypatch, text_rows, "full_sentence_batches")

  def make(**options):
    config = stub_objective.make_config("roberta")
    options = roberta.Options(**options)
    corpus = stub_objective.make_corpus()
    task = roberta.make_task(config, corpus, (0, 1), options)
    return task._replace(loss=jax.jit(task.loss, static_argnums=3))

  return make


def test_the_objective_counts_what_it_predicts(make_task):
  task = make_task(adapt_every=2, mask_rate=0.4, heldout_mask_rate=0.15)
  batch = stub_objective.single_text_rows(np.full(B, L))
  state = task.carried.init()
  # Types below 70 are hardly ever drawn now.
  state["weights"] = jnp.where(jnp.arange(V) < 70, 1e-9, 1.0)
  key = jax.random.key(0)
  masked = jax.device_get(jax.jit(task.carried.corrupt)(state, batch, key))
  hard = (batch["input_ids"] >= 70).sum(axis=1)
  predicted = masked["masked_weights"] > 0
  labels = masked["masked_labels"]
  np.testing.assert_array_equal(
    ((labels >= 70) & predicted).sum(1), np.minimum(hard, 5)
  )
  params = random_params(task)
  _, metrics = task.loss(params, masked, jax.random.key(1), True)
  counts = metrics[OBSERVED]["right"] + metrics[OBSERVED]["wrong"]
  np.testing.assert_array_equal(
    counts, np.bincount(labels[predicted], minlength=V)
  )
  # Held-out rows are masked evenly, and nothing is counted.
  assert OBSERVED not in task.loss(params, masked, None, False)[1]
  ((corrupt, _),) = task.measured
  plain = jax.jit(corrupt)(batch, key)["masked_labels"]
  assert ((plain > 0) & (plain < 70)).any()
  assert make_task().carried is NOTHING


@pytest.mark.parametrize(
  ("options", "words"),
  [
    ({"choose": "words"}, "adapt_every=9 .*choose='tokens'.*'words'"),
    ({"corruption": "delete"}, "adapt_every=9 .*'substitute'.*'delete'"),
  ],
)
def test_what_does_not_go_is_refused(make_task, options, words):
  with pytest.raises(ConfigError, match=words):
    make_task(adapt_every=9, **options)
