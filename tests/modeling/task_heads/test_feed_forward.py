"""Span means and the feedforward net, in plain numpy."""

import jax
import jax.numpy as jnp
import numpy as np

from helpers import encoder_reference as reference
from maskedlm.modeling.heads import span_means
from maskedlm.modeling.task_heads.label_heads import FeedForward

B, L, M, D = 2, 7, 3, 24
SPANS = np.array([[[1, 1], [2, 4], [6, 6]], [[0, 6], [5, 6], [3, 3]]], np.int32)


def vectors(dtype=np.float32):
  rng = np.random.default_rng(5)
  return rng.standard_normal((B, L, D)).astype(dtype)


def test_span_means():
  x = vectors()
  made = span_means(x, SPANS)
  expected = [
    [x[i, first : last + 1].mean(axis=0) for first, last in SPANS[i]]
    for i in range(B)
  ]
  assert made.shape == (B, M, D)
  np.testing.assert_allclose(made, expected, atol=1e-6)


def ffn(p, x, cfg):
  p = reference.as_float64(p)
  x = x @ p["hidden_dense"]["kernel"] + p["hidden_dense"]["bias"]
  x = reference.activate(x, cfg)
  return x @ p["score_dense"]["kernel"] + p["score_dense"]["bias"]


def test_ffn():
  cfg, x = reference.config(), vectors()[:, 0]
  head = FeedForward(cfg, D, 5)
  params = head.init(jax.random.key(0), x, train=False)["params"]
  params = reference.randomise(params)
  found = head.apply({"params": params}, x, train=False)
  np.testing.assert_allclose(found, ffn(params, x, cfg), rtol=1e-4, atol=1e-5)


def test_ffn_drops_out_at_random():
  cfg, x = reference.config(dropout=0.5), jnp.ones((4, D))
  head = FeedForward(cfg, D, 5)
  params = head.init(jax.random.key(0), x, train=False)["params"]
  params = reference.randomise(params)

  @jax.jit
  def run(key):
    rngs = {"dropout": jax.random.key(key)}
    return head.apply({"params": params}, x, train=True, rngs=rngs)

  assert (run(1) == run(1)).all() and not np.allclose(run(1), run(2))


def test_dropout_applies_to_both_layers():
  cfg, x = reference.config(dropout=0.5), jnp.ones((64, 1))
  head = FeedForward(cfg, 1, 1)
  params = head.init(jax.random.key(0), x, train=False)["params"]

  @jax.jit
  def score_rows(params):
    rngs = {"dropout": jax.random.key(1)}
    return head.apply({"params": params}, x, train=True, rngs=rngs)

  def count_scores(kernel):  # Different scores of 64 equal rows.
    hidden = params["hidden_dense"]
    hidden = {"kernel": 0 * hidden["kernel"], "bias": 0 * hidden["bias"] + 1}
    hidden["kernel"] = hidden["kernel"].at[0, 0].set(kernel)
    score = params["score_dense"]
    score = {**score, "kernel": (0 * score["kernel"]).at[0, 0].set(1)}
    chosen = {"hidden_dense": hidden, "score_dense": score}
    return len(np.unique(score_rows(chosen)))

  # The unit is dropped or not; if it reads the input, that may be dropped too:
  # 0, act(1) and act(1 + 2 * 3), doubled.
  assert count_scores(kernel=0) == 2 and count_scores(kernel=3) == 3
