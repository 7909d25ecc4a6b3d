"""The loss and its gradient in every parameter against plain numpy."""

import jax
import numpy as np
import pytest

from helpers import encoder_reference
from helpers.encoder_reference import B, P, V
from maskedlm.pretraining.objectives import mlm_nsp
from maskedlm.training.step import totals


def make_batch():
  rng = np.random.default_rng(8)
  batch = encoder_reference.make_batch()
  length = batch["segment_ids"].sum(1, keepdims=True)
  return {
    **batch,
    "masked_positions": rng.integers(0, length, (B, P)),
    "masked_labels": rng.integers(0, V, (B, P)),
    "masked_weights": np.float32(np.arange(P) < 1 + np.arange(B)[:, None] % P),
    "nsp_labels": rng.integers(0, 2, B),
    "example_weights": np.float32([1, 1, 0, 1, 1]),
  }


def by_reference(params, cfg, batch):
  """Returns the mean over the masked tokens plus the mean over the pairs."""
  mlm, nsp = 0.0, 0.0
  table = params["encoder"]["embeddings"]["token"]["embedding"]
  for b in range(B):
    row = {name: x[b] for name, x in batch.items()}
    hidden = encoder_reference.encode(
      params["encoder"],
      cfg,
      row["input_ids"],
      row["token_type_ids"],
      row["segment_ids"],
    )
    logits = encoder_reference.mlm_logits(
      params["mlm_head"], cfg, hidden[row["masked_positions"]], table
    )
    for p in range(P):
      loss = encoder_reference.cross_entropy(logits[p], row["masked_labels"][p])
      mlm += row["masked_weights"][p] * loss
    logits = encoder_reference.nsp_logits(
      params["pooler"], params["nsp_head"], hidden
    )
    nsp += row["example_weights"] * encoder_reference.cross_entropy(
      logits, row["nsp_labels"]
    )
  weights = batch["masked_weights"].sum(), batch["example_weights"].sum()
  return mlm / weights[0] + nsp / weights[1]


def test_loss_and_gradient_equal_plain_numpy():
  cfg, batch = encoder_reference.config(), make_batch()
  params = encoder_reference.make_params(cfg)

  @jax.jit
  @jax.value_and_grad
  def loss(params):
    terms, _ = totals(mlm_nsp.loss(cfg, params, batch, None, False))
    return sum(total / weight for total, weight in terms.values())

  ours, gradient = loss(params)
  params = encoder_reference.as_float64(params)
  assert ours == pytest.approx(by_reference(params, cfg, batch), rel=1e-5)

  # In one random direction for each array of parameters the derivative is
  # (f(+h) - f(-h)) / 2h, accurate to h^2 = 1e-10 in float64.
  leaves, tree = jax.tree.flatten(params)
  rng, h = np.random.default_rng(9), 1e-5
  for i, slope in enumerate(jax.tree.leaves(gradient)):
    direction = rng.standard_normal(leaves[i].shape)

    def moved(by, i=i, direction=direction):
      changed = list(leaves)
      changed[i] = leaves[i] + by * direction
      return by_reference(jax.tree.unflatten(tree, changed), cfg, batch)

    expected = (moved(h) - moved(-h)) / (2 * h)
    assert np.sum(slope * direction) == pytest.approx(
      expected, rel=1e-3, abs=1e-4
    )
