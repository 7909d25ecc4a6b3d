"""The biaffine heads against the paper's equations, word by word, in numpy."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from helpers import encoder_reference as reference
from maskedlm.modeling.task_heads.biaffine import ArcHead, LabelHead

B, W, K, A, R, T, D = 3, 7, 2, 11, 5, 4, reference.SIZES["width"]
GELU = np.vectorize(lambda v: v * (1 + math.erf(v / math.sqrt(2))) / 2)


def project(params, vector):
  dense = params["dense"]
  kernel, bias = np.float64(dense["kernel"]), np.float64(dense["bias"])
  return GELU(np.float64(vector) @ kernel + bias)


def test_scores():
  cfg, rng = reference.config(), np.random.default_rng(5)
  x = rng.normal(size=(B, W + 1, D)).astype(np.float32)
  places = rng.integers(0, W + 1, (B, W, K)).astype(np.int32)
  arcs, labels = ArcHead(cfg, A), LabelHead(cfg, R, T)
  key = jax.random.key(0)

  def random_params(module, *inputs):
    init = functools.partial(module.init, train=False)
    return reference.randomise(jax.eval_shape(init, key, *inputs)["params"])

  of_arcs = random_params(arcs, x)
  of_labels = random_params(labels, x, places)
  scores, logits = jax.jit(
    lambda: (
      arcs.apply({"params": of_arcs}, x, train=False),
      labels.apply({"params": of_labels}, x, places, train=False),
    )
  )()
  assert scores.shape == (B, W, W + 1) and scores.dtype == jnp.float32
  assert logits.shape == (B, W, K, T) and logits.dtype == jnp.float32

  matrix = np.float64(of_arcs["biaffine"]["kernel"]).T  # U.
  prior = np.float64(of_arcs["biaffine"]["bias"])  # u.
  kernel = np.float64(of_labels["biaffine"]["kernel"])  # [R, R + 1, T].
  bias = np.float64(of_labels["biaffine"]["bias"])
  for b, w in ((0, 0), (1, 3), (2, 6)):
    dependent = project(of_arcs["dependent"], x[b, w + 1])
    for c in range(W + 1):
      head = project(of_arcs["head"], x[b, c])
      expected = head @ matrix @ dependent + head @ prior
      np.testing.assert_allclose(scores[b, w, c], expected, atol=1e-4)
    dependent = project(of_labels["dependent"], x[b, w + 1])
    for k in range(K):
      head = project(of_labels["head"], x[b, places[b, w, k]])
      for t in range(T):
        expected = head @ kernel[:, :R, t].T @ dependent  # h_head U_t h_dep.
        expected += head @ bias[:R, t] + dependent @ kernel[:, R, t]  # W_t.
        expected += bias[R, t]
        np.testing.assert_allclose(logits[b, w, k, t], expected, atol=1e-4)
