"""The heads against loops over words and predicates."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from helpers import encoder_reference as reference
from maskedlm.modeling.task_heads.role_heads import (
  MAX_DISTANCE,
  RoleHead,
  WordHead,
)

B, L, K, T, D = 3, 37, 2, 5, reference.SIZES["width"]


def test_scores():
  cfg, rng = reference.config(), np.random.default_rng(5)
  x = rng.normal(size=(B, L, D)).astype(np.float32)
  at = np.array([[0, 36], [4, 4], [17, 1]], np.int32)

  def run(head, seed, *inputs):
    """Returns (random parameters, outputs)."""
    init = functools.partial(head.init, train=False)
    shapes = jax.eval_shape(init, jax.random.key(0), *inputs)["params"]
    params = reference.randomise(shapes, seed)
    apply = jax.jit(functools.partial(head.apply, train=False))
    return params, apply({"params": params}, *inputs)

  words, (finds, word, own) = run(WordHead(cfg), 0, x)
  roles, logits = run(RoleHead(cfg, T), 1, word, own, at)
  assert finds.shape == (B, L) and logits.shape == (B, K, L, T)
  assert finds.dtype == logits.dtype == jnp.float32

  def layer(params, vector):
    return vector @ np.float64(params["kernel"]) + np.float64(params["bias"])

  gelu = np.vectorize(lambda v: v * (1 + math.erf(v / math.sqrt(2))) / 2)
  for b in range(B):
    for w in (0, 5, 35):
      expected = layer(words["predicate_dense"], x[b, w])
      np.testing.assert_allclose(finds[b, w], expected[0], atol=1e-4)
      for k in range(K):
        p = at[b, k]
        far = max(-MAX_DISTANCE, min(MAX_DISTANCE, w - p))
        mixed = layer(words["word_dense"], x[b, w])
        own_p = x[b, p] @ np.float64(words["own_dense"]["kernel"])
        mixed = mixed * (1 + layer(roles["scale_dense"], own_p)) + own_p
        mixed = mixed + roles["distances"][far + MAX_DISTANCE]
        expected = layer(roles["tag_dense"], gelu(mixed))
        np.testing.assert_allclose(logits[b, k, w], expected, atol=1e-4)
