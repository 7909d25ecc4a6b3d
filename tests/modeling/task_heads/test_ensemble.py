"""The means of an ensemble's members, worked by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maskedlm.modeling.task_heads import ensemble

# Three members, two rows, four labels; members' logits have different offsets.
SHARES = np.array(
  [
    [[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1]],
    [[0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25]],
    [[0.25, 0.25, 0.5, 0.0], [0.1, 0.1, 0.2, 0.6]],
  ]
)
OFFSETS = np.array([[1.0, -2], [5, 0], [0, 3.5]])[..., None]
with np.errstate(divide="ignore"):
  LOGITS = np.maximum(np.log(SHARES), -1e4) + OFFSETS


def test_the_softmax_is_the_mean_softmax():
  found = ensemble.mean_softmax(jnp.array(LOGITS))
  shares = [[0.25, 0.25, 1 / 3, 0.5 / 3], [0.35, 0.15, 0.55 / 3, 0.95 / 3]]
  np.testing.assert_allclose(jax.nn.softmax(found), shares, atol=1e-6)
  # The normaliser is the mean one, (1 + 5) / 3 and (-2 + 3.5) / 3.
  total = jax.nn.logsumexp(found, axis=-1)
  np.testing.assert_allclose(total, [2, 0.5], atol=1e-6)


def test_shares_too_small_for_float32_keep_their_order():
  logits = jnp.array([[[0.0, -150, -160]], [[0, -170, -155]]])
  found = ensemble.mean_softmax(logits)[0]
  np.testing.assert_allclose(
    found, [0, -150 - np.log(2), -155 - np.log(2) + np.exp(-5)], atol=1e-2
  )


def test_the_sigmoid_is_the_mean_sigmoid():
  shares = np.array([[0.5, 0.9, 1e-30], [0.25, 0.1, 1e-30], [0.3, 0.8, 3e-30]])
  logits = np.log(shares) - np.log1p(-shares)
  found = ensemble.mean_sigmoid(jnp.array(logits))
  expected = [0.35, 0.6, 5e-30 / 3]
  np.testing.assert_allclose(jax.nn.sigmoid(found), expected, rtol=1e-5)


def test_products_of_vectors_side_by_side_are_the_sums_of_products():
  q, k = np.random.default_rng(0).normal(size=(2, 3, 5, 7))
  joined = [np.asarray(ensemble.side_by_side(jnp.array(x))) for x in (q, k)]
  assert joined[0].shape == (5, 21)
  np.testing.assert_allclose(
    joined[0] @ joined[1].T,
    sum(a @ b.T for a, b in zip(q, k, strict=True)),
    atol=1e-5,
  )


@pytest.mark.parametrize(
  "mean", [ensemble.mean_softmax, ensemble.mean_sigmoid, ensemble.mean]
)
def test_means_of_one_are_its_own_scores_to_the_bit(mean):
  x = jnp.array(LOGITS[0], jnp.float32)
  np.testing.assert_array_equal(mean(ensemble.alone(x)), x)


def outputs(params, batch, every=ensemble.alone):
  logits = ensemble.mean_softmax(every(params["scale"] * batch["x"]))
  return {"best": jnp.argmax(logits, axis=-1), "logits": logits}


def test_members_are_averaged_before_the_choice():
  """Each alone chooses label 0 or 1; together, label 2."""
  x = np.log([[0.5, 0.02, 0.48], [0.02, 0.5, 0.48]])
  params = {"scale": jnp.array(x)[:, None]}
  batch = {"x": jnp.ones((1, 3))}
  found = ensemble.over_members(outputs)(params, batch)
  assert found["best"].tolist() == [2]
  np.testing.assert_allclose(
    np.exp(found["logits"]), [[0.26, 0.26, 0.48]], rtol=1e-5
  )
  alone = [outputs({"scale": s}, batch)["best"] for s in params["scale"]]
  assert np.ravel(alone).tolist() == [0, 1]


def test_an_output_that_is_not_averaged_is_refused():
  broken = ensemble.over_members(
    lambda params, batch, every: {"x": params * batch["x"]}
  )
  with pytest.raises(ValueError, match="out_axes"):
    broken(jnp.ones(2), {"x": jnp.ones(3)})
