"""Heads by hand and against plain numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference
from helpers.encoder_reference import B, P, V
from maskedlm.modeling import heads, layers, masked_lm
from maskedlm.training.step import totals

CFG = encoder_reference.config()
D = CFG.width


@pytest.fixture(scope="module")
def params():
  return encoder_reference.make_params(CFG)


def test_gather_positions_by_hand():
  x = np.arange(12.0).reshape(2, 3, 2)
  ours = heads.gather_positions(x, np.array([[2, 0], [1, 1]]))
  np.testing.assert_array_equal(ours, [[[4, 5], [0, 1]], [[8, 9], [8, 9]]])


def test_row_vector_by_hand():
  x = np.float32([[[1, 2], [3, 5], [5, 2]], [[7, 7], [7, 7], [7, 7]]])
  segment_ids = np.array([[1, 2, 0], [0, 0, 0]])  # The second is a filler.
  for changes, expected in (
    ({}, [[1, 2], [7, 7]]),
    ({"row_pool": "mean"}, [[2, 3.5], [0, 0]]),
    ({"causal": True}, [[3, 5], [7, 7]]),
    ({"causal": True, "right_to_left": True}, [[1, 2], [7, 7]]),
  ):
    cfg = encoder_reference.config(**changes)
    found = heads.row_vector(cfg, x, segment_ids)
    np.testing.assert_array_equal(found, expected)


def test_a_late_pool_is_the_mean_of_what_the_pooler_makes_of_tokens():
  cfg = encoder_reference.config(row_pool="late", pooler="relu", width=2)
  x = np.float32([[[1, -2], [3, 5], [9, 9]]])
  segment_ids = np.array([[1, 1, 0]])
  dense = {"kernel": np.eye(2, dtype=np.float32), "bias": np.float32([0, 1])}
  # relu([1, -1]) and relu([3, 6]); of the means it would be relu([2, 2.5]).
  found = heads.row_vector(cfg, x, segment_ids, {"dense": dense})
  np.testing.assert_array_equal(found, [[2, 3]])
  # Without a pooler it is the mean.
  found = heads.row_vector(cfg, x, segment_ids)
  np.testing.assert_array_equal(found, [[2, 1.5]])


def test_own_tables_and_linear_heads_have_these_parameters():
  def made(**changes):
    cfg = encoder_reference.config(**changes)
    params = jax.eval_shape(
      lambda key: masked_lm.init(cfg, *jax.random.split(key)), jax.random.key(0)
    )
    return set(params["mlm_head"])

  dense = {"transform", "norm", "bias"}
  assert made() == dense
  assert made(tied=False) == {*dense, "embedding"}
  assert made(mlm_head="linear") == {"bias"}
  assert made(mlm_head="linear", tied=False) == {"bias", "embedding"}
  alone = {"mlm_head": "linear", "tied": False, "biases": False}
  assert made(**alone) == {"embedding"}


def test_means_are_summed_in_float32():
  # The sum of seven 37s, 259, is not a bfloat16; 260 / 7 would be 37.25.
  x, segment_ids = jnp.full((1, 7, 1), 37, jnp.bfloat16), np.ones((1, 7), int)
  assert heads.mean_vector(CFG, x, segment_ids).tolist() == [[37]]


def test_initial_deviations_by_hand():
  cfg = encoder_reference.config(width=16, num_layers=8, init_stddev=0.02)
  assert heads.head_stddevs(cfg) == (0.02, 0.02)
  cfg = encoder_reference.config(
    pooler="norm", width=16, num_layers=8, init_stddev=0.02
  )
  assert heads.head_stddevs(cfg) == pytest.approx((0.02 / 4, 1 / 4))
  layer = heads.DenseNorm(cfg, 64, 0.5)
  params = layer.init(jax.random.key(0), np.ones((1, 64)))["params"]
  found = np.std(params["dense"]["kernel"])
  assert found == pytest.approx(0.5, rel=0.2)


@pytest.mark.parametrize(
  ("pooler", "biases", "expected"),
  [("tanh", False, True), ("norm", False, False), ("norm", True, True)],
)
def test_only_the_pooler_with_a_norm_may_lack_a_bias(pooler, biases, expected):
  head = heads.Pooler(encoder_reference.config(pooler=pooler, biases=biases))
  params = head.init(jax.random.key(0), np.ones((1, 2, D)))["params"]
  assert ("bias" in params["dense"]) == expected


def test_heads_and_encoder_drop_different_entries():
  # Even if their modules have the same path.
  key, x = jax.random.key(0), jnp.ones((1, 99))

  def dropped(rngs):
    return layers.Dropout(0.5).apply({}, x, train=True, rngs=rngs)

  of_head = masked_lm.head_rngs(key, True)
  assert (dropped(of_head) != dropped({"dropout": key})).sum() > 20
  assert not masked_lm.head_rngs(key, False)


def test_terms_and_metrics_by_hand():
  scores = np.array([[3.0, 5.0, 7.0]]), np.array([[True, False, True]])
  weights = np.array([[2.0, 1.0, 0.0]])
  terms, metrics = masked_lm.terms_and_metrics(
    scores, {"masked_weights": weights}
  )
  assert totals(terms["mlm"]) == totals(metrics["mlm_loss"]) == (11, 3)
  assert totals(metrics["mlm_accuracy"]) == (2, 3)


def test_padded_ids_are_impossible_and_untrained(params):
  head = heads.MlmHead(CFG)
  x = np.random.default_rng(4).standard_normal((B, P, D), np.float32)
  table = params["encoder"]["embeddings"]["token"]["embedding"]

  def total(head_params, table):
    logits = head.apply({"params": head_params}, x, table)
    return jnp.sum(jax.nn.log_softmax(logits)[..., :V]), logits

  gradient = jax.jit(jax.grad(total, argnums=(0, 1), has_aux=True))
  (head_grad, table_grad), logits = gradient(params["mlm_head"], table)
  assert logits.shape == (B, P, 256)
  assert (logits[..., V:] == -1e9).all()
  assert (head_grad["bias"][V:] == 0).all()
  assert (table_grad[V:] == 0).all()
  assert np.abs(table_grad[:V]).min() > 0
