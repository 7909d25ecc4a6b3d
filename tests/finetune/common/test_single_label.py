"""One label per example: loss, outputs and probabilities, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maskedlm.finetune.common import single_label
from maskedlm.finetune.common.head import Head
from maskedlm.training.step import totals

BATCH = {
  "x": jnp.log(jnp.array([[1.0, 1, 2], [6, 1, 1], [1, 8, 1]])),
  "labels": jnp.array([2, 1, 0]),
  "example_weights": jnp.array([1.0, 1, 0]),  # The last is a filler row.
}


def logits(params, batch, key, train):
  assert (key is not None) == train
  return params * batch["x"]


APP = single_label.make_classifier(
  Head(None, logits),
  make_rows=None,
  predict=lambda example, shares: {example: shares},
  score=None,
  best="",
  has_label=lambda example: True,
  require_labels=None,
  term="sense",
  metric="correct",
)


@jax.jit
def loss(scale, batch):
  return totals(APP.loss(scale, batch, None, False))


def test_an_unseen_label_counts_as_wrong_but_not_in_the_loss():
  batch = {**BATCH, "labels": jnp.array([2, -1, 0])}
  for scale in (1.0, -1.0):  # All logits of the second row above 0, or below.
    terms, metrics = loss(scale, batch)
    expected = np.log(4 / 2) if scale > 0 else np.log((1 + 1 + 0.5) / 0.5)
    np.testing.assert_allclose(terms["sense"], (expected, 1), rtol=1e-6)
    np.testing.assert_allclose(metrics["correct"], (scale > 0, 2))
  slope = jax.jit(jax.grad(lambda *args: loss(*args)[0]["sense"][0]))
  known = {**batch, "example_weights": jnp.array([1.0, 0, 0])}
  np.testing.assert_allclose(slope(1.0, batch), slope(1.0, known))


def test_decode_gives_probabilities():
  # Also of large logits, and of examples with different numbers of labels.
  found = {"logits": [np.log([1, 1, 2]), np.float32([1e4, 1e4])]}
  assert APP.decode(["a", "b"], None, found, {}) == [
    {"a": pytest.approx([0.25, 0.25, 0.5])},
    {"b": [0.5, 0.5]},
  ]
  assert APP.decode([], None, {}, {}) == []
