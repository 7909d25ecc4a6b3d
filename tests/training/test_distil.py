"""What a student's loss adds for its teacher, against numpy and by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from maskedlm.modeling import losses, reports
from maskedlm.training import distil


def test_two_classes_by_hand():
  """3/4 and 1/4 against equal shares: log 2 less an entropy of 0.5623 nats."""
  own, other = np.zeros((1, 2)), np.log([[3.0, 1.0]])
  found = losses.divergence(own, other)
  np.testing.assert_allclose(found, np.log(2) - 0.562335, atol=1e-6)
  # A class that the teacher excludes counts nothing, as does padding.
  excluded = np.array([[0.0, -np.inf, -1e9]])
  np.testing.assert_allclose(
    losses.divergence(np.zeros((1, 3)), excluded), np.log(3), rtol=1e-6
  )
  np.testing.assert_array_equal(losses.divergence(excluded, excluded), 0)


@pytest.mark.parametrize("places", [3, distil.CHUNK + 7])
def test_scores_are_compared_where_the_loss_weighs_them(places):
  B, C, T = 2, 5, 1.7
  rng = np.random.default_rng(0)
  own, other = (rng.normal(size=(B, places, C)).astype("f") for _ in "ab")
  weights = rng.integers(0, 3, (B, places)).astype("f")
  labels = rng.integers(0, C, (B, places))

  def loss(own):
    _, mine = reports.hear(
      lambda: losses.loss_and_accuracy(own, labels, weights=weights)
    )
    _, theirs = reports.hear(
      lambda: losses.loss_and_accuracy(
        jnp.array(other), labels, weights=weights
      )
    )
    total, weight = distil.distance(*mine.scores, *theirs.scores, T)
    return total.sum(), (total, weight)

  grad, (total, weight) = jax.jit(jax.grad(loss, has_aux=True))(own)
  p, q = (special.softmax(x.astype("d") / T, -1) for x in (other, own))
  each = T**2 * (p * np.log(p / q)).sum(-1)
  np.testing.assert_allclose(total, (each * weights).sum(1), rtol=1e-5)
  np.testing.assert_array_equal(weight, weights.sum(1))
  # Hinton et al., equation 2: (q - p) / T, times T^2.
  np.testing.assert_allclose(grad, T * (q - p) * weights[..., None], atol=1e-5)


def test_numbers_have_half_their_squared_difference():
  def heard(x):
    return reports.hear(reports.report, jnp.array(x)[:, None], jnp.ones(2))[1]

  total, weight = distil.distance(
    *heard([1.0, 3.0]).scores, *heard([2.0, -1.0]).scores, 2.5
  )
  np.testing.assert_allclose(total, [0.5, 8.0], rtol=1e-6)
  np.testing.assert_array_equal(weight, [1, 1])


def test_layers_are_compared_by_their_angle():
  rng = np.random.default_rng(1)
  own = rng.normal(size=(3, 2, 5, 4)).astype("f")  # 2 layers.
  other = rng.normal(size=(5, 2, 5, 7)).astype("f")  # 4 layers.
  kernel = rng.normal(size=(4, 7)).astype("f")
  real = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])

  def cosine(a, b):
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))

  for layers, pairs in (((2, 4), [(1, 2), (2, 4)]), ((0, 3), [(2, 3)])):
    total, weight = distil.layer_distance(
      (own, real), (other, real), layers, {"kernel": kernel}
    )
    each = np.mean([1 - cosine(own[n] @ kernel, other[m]) for n, m in pairs], 0)
    np.testing.assert_allclose(total, (each * real).sum(1), rtol=1e-5)
    np.testing.assert_array_equal(weight, [3, 5])
  total, _ = distil.layer_distance((own, real), (own, real), (1, 2), None)
  np.testing.assert_allclose(total, 0, atol=1e-5)


def test_what_is_computed_in_a_loop_is_not_heard():
  def step(total, x):
    loss, _ = losses.loss_and_accuracy(
      x, jnp.zeros(2, int), weights=jnp.ones(2)
    )
    return total + loss[0].sum(), None

  def both(x):
    jax.lax.scan(step, 0.0, x)
    return step(0.0, x[0])

  (_, heard) = reports.hear(jax.lax.scan, step, 0.0, jnp.ones((3, 2, 4)))
  assert not heard.scores
  (_, heard) = reports.hear(both, jnp.ones((3, 2, 4)))
  assert len(heard.scores) == 1
  assert reports.listener() is None  # Afterwards.
