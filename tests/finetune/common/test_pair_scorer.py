"""Scores of pairs of spans: span means, and the scorer, in plain numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference as reference
from maskedlm.finetune.common import span_vectors
from maskedlm.finetune.common.pair_scorer import (
  FeedForward,
  PairScorer,
  span_means,
)

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

  def run(key):
    rngs = {"dropout": jax.random.key(key)}
    return head.apply({"params": params}, x, train=True, rngs=rngs)

  assert (run(1) == run(1)).all() and not np.allclose(run(1), run(2))


def test_dropout_applies_to_both_layers():
  cfg, x = reference.config(dropout=0.5), jnp.ones((64, 1))
  head = FeedForward(cfg, 1, 1)
  params = head.init(jax.random.key(0), x, train=False)["params"]

  def count_scores(kernel):  # Different scores of 64 equal rows.
    hidden = params["hidden_dense"]
    hidden = {"kernel": 0 * hidden["kernel"], "bias": 0 * hidden["bias"] + 1}
    hidden["kernel"] = hidden["kernel"].at[0, 0].set(kernel)
    score = params["score_dense"]
    score = {**score, "kernel": (0 * score["kernel"]).at[0, 0].set(1)}
    chosen = {"hidden_dense": hidden, "score_dense": score}
    rngs = {"dropout": jax.random.key(1)}
    return len(
      np.unique(head.apply({"params": chosen}, x, train=True, rngs=rngs))
    )

  # The unit is dropped or not; if it reads the input, that may be dropped too:
  # 0, act(1) and act(1 + 2 * 3), doubled.
  assert count_scores(kernel=0) == 2 and count_scores(kernel=3) == 3


def test_pair_scorer():
  """[p; a; p * a] with p = [z_i; z_j; mean] of the first span."""
  cfg, x = reference.config(), vectors()
  head = PairScorer(cfg, "endpoints_mean")
  params = head.init(jax.random.key(0), x, SPANS, train=False)["params"]
  params = reference.randomise(params)
  found = head.apply({"params": params}, x, SPANS, train=False)
  assert found.shape == (B, M - 1)
  for i in range(B):
    p, *others = (
      np.concatenate([x[i, a], x[i, b], x[i, a : b + 1].mean(axis=0)])
      for a, b in SPANS[i]
    )
    for j, a in enumerate(others):
      pair = np.concatenate([p, a, p * a])
      expected = ffn(params["ffn"], pair[None], cfg)[0, 0]
      assert found[i, j] == pytest.approx(expected, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("name", list(span_vectors.REPRESENTATIONS))
def test_tokens_outside_all_spans_do_not_count(name):
  """They influence no score and get no gradient."""
  cfg, x = reference.config(), jnp.array(vectors())
  head = PairScorer(cfg, name)
  params = head.init(jax.random.key(0), x, SPANS, train=False)["params"]
  params = reference.randomise(params)

  def total(x):
    return head.apply({"params": params}, x, SPANS, train=False)[0].sum()

  gradient = np.abs(jax.grad(total)(x)).max(axis=-1)
  inside = [False, True, True, True, True, False, True]
  assert ((gradient[0] > 1e-6) == inside).all()
  assert not gradient[1].any()


def test_bfloat16_gives_float32_scores():
  cfg = reference.config(dtype="bfloat16")
  head = PairScorer(cfg, "endpoints_mean")
  x = vectors().astype(jnp.bfloat16)
  params = head.init(jax.random.key(0), x, SPANS, train=False)
  found = head.apply(params, x, SPANS, train=False)
  assert found.dtype == jnp.float32
