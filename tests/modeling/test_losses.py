"""Losses and accuracies by hand."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.modeling import losses


def test_gradient_is_probability_minus_label():
  rng = np.random.default_rng(0)
  logits = 3 * rng.standard_normal((5, 3, 7), np.float32)
  labels = rng.integers(0, 7, (5, 3))
  weights = rng.random((5, 3), np.float32)

  def total(logits):
    (loss, _), _ = losses.loss_and_accuracy(logits, labels, weights=weights)
    return loss.sum()

  exp = np.exp(np.float64(logits))
  expected = exp / exp.sum(-1, keepdims=True) - np.eye(7)[labels]
  expected *= weights[..., None]
  np.testing.assert_allclose(
    jax.jit(jax.grad(total))(logits), expected, atol=1e-6
  )


def test_a_cpus_gradient_is_that_of_other_devices(monkeypatch):
  rng = np.random.default_rng(1)
  logits = 3 * rng.standard_normal((5, 3, 7), np.float32)
  labels, slope = rng.integers(0, 7, (5, 3)), rng.random((5, 3), np.float32)

  def total(logits):
    loss, correct = losses.loss_and_correct(logits, labels)
    return jnp.sum(loss * slope), correct

  made = []
  for answer in (True, False):
    monkeypatch.setattr(losses, "on_cpu", lambda answer=answer: answer)
    gradient = jax.value_and_grad(total, has_aux=True)
    # A new function: what is compiled is kept by function.
    made.append(jax.jit(lambda x, f=gradient: f(x))(logits))
  ((loss, correct), grad), ((other, same), other_grad) = made
  np.testing.assert_allclose(loss, other, rtol=1e-6)
  assert correct.tolist() == same.tolist()
  np.testing.assert_allclose(grad, other_grad, atol=1e-6)


def test_bfloat16_logits_are_summed_in_float32():
  logits = np.float32(np.random.default_rng(0).integers(-8, 8, (3, 1000)) / 4)
  labels = np.array([7, 0, 999])
  loss, _ = losses.loss_and_correct(
    jnp.asarray(logits, jnp.bfloat16), labels
  )  # Exact.
  expected = np.log(np.exp(np.float64(logits)).sum(1))
  expected -= logits[np.arange(3), labels]
  assert loss.dtype == jnp.float32
  np.testing.assert_allclose(loss, expected, rtol=1e-6)


def test_large_logits_and_bfloat16_stay_finite():
  logits = jnp.array([[1e4, -1e4, 0.0]], jnp.bfloat16)
  (total, weight), _ = losses.loss_and_accuracy(
    logits, jnp.array([0]), weights=jnp.ones(1)
  )
  assert total == 0
  assert total.dtype == weight.dtype == jnp.float32


def test_rows_without_predictions_are_zero():
  pairs = (jnp.ones((2, 3)), jnp.zeros(2, jnp.int32))
  found = losses.loss_and_accuracy(*pairs, weights=jnp.zeros(2))
  np.testing.assert_array_equal(found, np.zeros((2, 2, 2)))


def test_sums_of_each_row_by_hand():
  logits = jnp.log(jnp.array([[[1, 3], [2, 2]], [[3, 1], [1, 3]]]) / 4)
  labels, weights = jnp.array([[0, 1], [0, 0]]), jnp.array([[1, 3], [0.5, 0]])
  (total, weight), (correct, same) = losses.loss_and_accuracy(
    logits, labels, weights=weights
  )
  expected = [math.log(4) + 3 * math.log(2), 0.5 * math.log(4 / 3)]
  np.testing.assert_allclose(total, expected, rtol=1e-6)
  assert weight.tolist() == same.tolist() == [4, 0.5]
  assert correct.tolist() == [0, 0.5]  # The first of equal logits wins.


def test_the_first_of_equal_logits_is_the_largest():
  logits = jnp.array([2.0, 5.0, 5.0, 1.0, jnp.nan])
  rows = jnp.stack([logits[:4]] * 4 + [jnp.roll(logits, 1)[:4]])
  _, correct = losses.loss_and_correct(rows, jnp.array([0, 1, 2, 3, 1]))
  assert correct.tolist() == [False, True, False, False, False]
