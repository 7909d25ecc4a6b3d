"""The attention weights of every head against a softmax by hand."""

import functools

import jax
import numpy as np

from helpers import encoder_reference
from helpers.encoder_reference import SIZES, B, L
from maskedlm.modeling import masked_lm

N, H = SIZES["num_layers"], SIZES["num_heads"]
BATCH = encoder_reference.make_batch()
SEGMENTS = BATCH["segment_ids"]
SAME_SEGMENT = (
  SEGMENTS[:, None, :, None] == SEGMENTS[:, None, None, :]
)  # [B, 1, L, S]


def make(**options):
  cfg = encoder_reference.config(**options)
  return cfg, jax.device_put(encoder_reference.make_params(cfg))


@functools.partial(jax.jit, static_argnums=0)
def weights_of(cfg, params, batch):
  return jax.nn.softmax(masked_lm.attention_scores(cfg, params, batch))


def by_hand(x, p, cfg, segments):
  """Returns the scores, weights [H, L, S] of a layer for x [L, D], by head."""
  K = cfg.width // cfg.num_heads
  maps = []
  for h in range(cfg.num_heads):
    query, key = (
      x @ p["qkv"]["kernel"][:, i, h] + p["qkv"]["bias"][i, h] for i in (0, 1)
    )
    scores = query @ key.T / np.sqrt(K)
    scores[segments[:, None] != segments[None]] = -np.inf
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    maps.append((scores, raised / raised.sum(axis=1, keepdims=True)))
  return map(np.stack, zip(*maps, strict=True))


def test_equals_plain_numpy():
  cfg, params = make(dropout=0.3, attention_dropout=0.2)  # In training.
  ours = weights_of(cfg, params, BATCH)
  assert ours.shape == (N, B, H, L, L) and ours.dtype == np.float32
  scores, layers = (
    jax.jit(function, static_argnums=0)(cfg, params, BATCH)
    for function in (masked_lm.attention_scores, masked_lm.encode_layers)
  )
  scores, layers = np.array(scores), np.float64(layers)
  assert scores.shape == ours.shape and scores.dtype == np.float32
  scores[scores == -1e9] = -np.inf
  attention = encoder_reference.as_float64(
    params["encoder"]["layers"]["attention"]
  )
  for n in range(N):
    p = jax.tree.map(lambda a, n=n: a[n], attention)
    for b, (x, segments) in enumerate(zip(layers[n], SEGMENTS, strict=True)):
      before, after = by_hand(x, p, cfg, segments)
      np.testing.assert_allclose(scores[n, b], before, atol=1e-4)
      np.testing.assert_allclose(ours[n, b], after, atol=1e-5)
  # All heads differ, so they cannot be swapped.
  differences = np.abs(np.diff(ours, axis=2)).max(axis=(1, 3, 4))
  assert differences.min() > 0.1


def test_rows_sum_to_1():
  cfg, params = make(dtype="bfloat16", remat="dots", norm_order="pre")
  ours = np.asarray(weights_of(cfg, params, BATCH))
  assert ours.shape == (cfg.num_layers, B, H, L, L)
  assert ours.dtype == np.float32
  np.testing.assert_allclose(ours.sum(axis=-1), 1, atol=1e-5)
  assert (ours == 0)[:, np.broadcast_to(~SAME_SEGMENT, ours.shape[1:])].all()
  assert (ours > 0)[:, np.broadcast_to(SAME_SEGMENT, ours.shape[1:])].all()


def test_masked_keys_have_weight_0():
  cfg, params = make(causal=True)
  ours = np.asarray(weights_of(cfg, params, BATCH))
  assert not np.triu(ours, 1).any()
  # The first layer is global, the second has two keys on each side.
  cfg, params = make(position="rope", local_window=4, global_every=2)
  ours = np.asarray(weights_of(cfg, params, BATCH))[:, 0]  # All real.
  far = np.abs(np.subtract.outer(np.arange(L), np.arange(L))) > 2
  assert (ours[0] > 0).all()
  assert not ours[1][:, far].any() and (ours[1][:, ~far] > 0).all()


def test_weights_are_not_kept_by_encode():
  cfg, params = make()
  traced = jax.make_jaxpr(
    lambda p: masked_lm.encode(cfg, p, BATCH, None, False)
  )
  (scan,) = (eqn for eqn in traced(params).eqns if eqn.primitive.name == "scan")
  # The scan returns only the hidden vectors, nothing of [N, B, H, L, S].
  assert [out.aval.shape for out in scan.outvars] == [(B * L, cfg.width)]


def test_packed_texts_have_the_weights_of_single_ones():
  cfg, params = make()
  ids = BATCH["input_ids"][:1, :5]
  alone = {"input_ids": ids, "token_type_ids": 0 * ids}
  alone["segment_ids"] = np.ones_like(ids)
  both = {name: np.tile(x, (1, 2)) for name, x in alone.items()}
  both["segment_ids"] = np.repeat([[1, 2]], 5, axis=1)
  both["positions"] = np.tile(np.arange(5), (1, 2))
  expected = weights_of(cfg, params, alone)
  found = np.asarray(weights_of(cfg, params, both))
  for at in (slice(0, 5), slice(5, 10)):
    np.testing.assert_allclose(found[..., at, at], expected, atol=1e-6)
  assert not found[..., :5, 5:].any() and not found[..., 5:, :5].any()
