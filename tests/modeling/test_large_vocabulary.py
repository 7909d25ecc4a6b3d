"""The loss over a vocabulary in blocks equals the loss over the whole."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference
from helpers.encoder_reference import B, L, P
from maskedlm.modeling import heads, losses, masked_lm, vocabulary_softmax

# Padded to 384: 16 strips of 24 tokens, in two blocks of 16 rows of each, which
# share 8; 300 ends within the 13th strip.
V, PADDED, BLOCK, E, N = 300, 384, 200, 11, 7


def config(block, **changes):
  return encoder_reference.config(vocab_size=V, vocab_block=block, **changes)


@pytest.fixture(scope="module")
def arrays():
  rng = np.random.default_rng(0)
  x = rng.standard_normal((N, E), np.float32)
  embedding = rng.standard_normal((PADDED, E), np.float32)
  bias = rng.standard_normal(PADDED, np.float32)
  labels = np.array([0, 17, 18, 40, 128, 298, 299])
  return x, embedding, bias, labels


def total(cfg, x, embedding, bias, labels, slope):
  loss, correct = vocabulary_softmax.loss_and_correct(
    cfg, x, embedding, bias, labels=labels
  )
  return jnp.sum(loss * slope), (loss, correct)


@pytest.mark.parametrize(
  ("size", "block", "expected"),
  [
    (384, 200, (2, 16, 24)),
    (384, 128, (3, 8, 24)),
    (384, 1, (3, 8, 24)),  # No block is smaller than a tile of each strip.
    (250_112, 32_768, (8, 1_960, 15_632)),
    (250_112, 65_536, (4, 3_912, 15_632)),
  ],
)
def test_split_vocabulary_by_hand(size, block, expected):
  blocks = vocabulary_softmax.split_vocabulary(size, block)
  assert blocks == expected
  assert (blocks.num_blocks - 1) * blocks.rows < blocks.strip
  assert blocks.strip <= blocks.num_blocks * blocks.rows


def test_a_cpus_loss_is_that_of_other_devices(arrays, monkeypatch):
  x, embedding, bias, labels = arrays
  slope = np.linspace(-1, 2, N, dtype=np.float32)
  # Two equal logits: the first of them is correct.
  embedding, bias = embedding.copy(), bias.copy()
  embedding[299], bias[299] = embedding[298], bias[298]
  cfg = config(block=PADDED)
  made = []
  for answer in (True, False):
    for module in (losses, vocabulary_softmax):
      monkeypatch.setattr(module, "on_cpu", lambda answer=answer: answer)
    made.append(
      jax.jit(
        jax.value_and_grad(
          lambda *xs: total(cfg, *xs, labels, slope), (0, 1, 2), has_aux=True
        )
      )(x, embedding, bias)
    )
  ((_, (loss, correct)), grads), ((_, (others, same)), other_grads) = made
  np.testing.assert_allclose(loss, others, rtol=1e-6)
  assert correct.tolist() == same.tolist()
  for grad, other in zip(grads, other_grads, strict=True):
    np.testing.assert_allclose(grad, other, atol=1e-6)
  # Padding has no gradient at all.
  assert not np.any(grads[1][V:]) and not np.any(grads[2][V:])


score = jax.jit(vocabulary_softmax.loss_and_correct, static_argnums=0)
both = jax.jit(
  jax.value_and_grad(total, argnums=(1, 2, 3), has_aux=True), static_argnums=0
)


@pytest.mark.parametrize("block", [BLOCK, 128])
def test_loss_and_gradients_equal_those_of_the_whole(arrays, block):
  slope = np.array([1, 0, 2, 0.5, 1, 3, 1], np.float32)
  (_, (loss, correct)), gradients = both(config(V + 99), *arrays, slope)
  (_, (ours, found)), slopes = both(config(block), *arrays, slope)
  np.testing.assert_allclose(ours, loss, rtol=1e-5, atol=1e-5)
  np.testing.assert_array_equal(found, correct)
  assert ours.dtype == jnp.float32 and found.dtype == bool
  for a, b in zip(slopes, gradients, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
  assert (slopes[1][V:] == 0).all() and (slopes[2][V:] == 0).all()
  assert np.abs(slopes[1][:V]).min() > 0


def test_loss_by_hand():
  # Logits are 0, except ln 4 of token 25 and ln 97 of 290: e^0 * 298 + 4 + 97.
  embedding = np.zeros((PADDED, 1), np.float32)
  embedding[25], embedding[290] = math.log(4), math.log(97)
  embedding[V:] = 9  # Padding, which is ignored.
  x, bias = np.ones((3, 1), np.float32), np.zeros(PADDED, np.float32)
  labels = np.array([25, 290, 3])
  loss, correct = score(config(BLOCK), x, embedding, bias, labels=labels)
  everything = math.log(298 + 4 + 97)
  expected = [everything - math.log(4), everything - math.log(97), everything]
  np.testing.assert_allclose(loss, expected, rtol=1e-6)
  np.testing.assert_array_equal(correct, [False, True, False])


@pytest.mark.parametrize("first", [20, 30, 44])
def test_the_first_token_of_equal_logits_wins(first):
  # 20, 44: row 20 of strips 0 and 1, in the second block; 30: in the first.
  bias = np.zeros(PADDED, np.float32)
  bias[[w for w in (20, 30, 44) if w >= first]] = 5.0
  x, embedding = np.ones((PADDED, 2), np.float32), np.zeros((PADDED, 2))
  labels = np.arange(PADDED)
  cfg = config(BLOCK)
  _, correct = score(cfg, x, np.float32(embedding), bias, labels=labels)
  assert np.flatnonzero(correct).tolist() == [first]


def test_large_logits_and_bfloat16_stay_finite(arrays):
  x, embedding, bias, labels = arrays
  slope = np.ones(N, np.float32)
  cfg = config(BLOCK, dtype="bfloat16")
  x = jnp.asarray(1e4 * x, jnp.bfloat16)
  (value, _), slopes = both(cfg, x, embedding, bias, labels, slope)
  whole = config(V + 99, dtype="bfloat16")
  (expected, _), gradients = both(whole, x, embedding, bias, labels, slope)
  np.testing.assert_allclose(value, expected, rtol=5e-3)
  for a, b in zip(slopes, gradients, strict=True):
    assert a.dtype == b.dtype
    assert np.isfinite(np.float32(a)).all()
    np.testing.assert_allclose(
      np.float32(a), np.float32(b), rtol=0.02, atol=0.02 * np.abs(b).max()
    )


def test_gradients_of_blocks_are_summed_in_float32():
  # All 512 tokens have probability 1/512. A token in each of four blocks (rows
  # 0-7, 8-15, 16-23, 24-31 of each strip) is not 0: 256 + 1 + 1 + 1 is 260 in
  # bfloat16, which has 256, 258, 260, but 256 + 1 is 256.
  cfg = encoder_reference.config(
    vocab_size=512, vocab_block=128, dtype="bfloat16"
  )
  embedding = np.zeros((512, 1), np.float32)
  embedding[[0, 8, 16, 24], 0] = np.array([256, 1, 1, 1]) * 512
  x, bias = jnp.zeros((1, 1), jnp.bfloat16), np.zeros(512, np.float32)
  _, (slope, _, _) = both(cfg, x, embedding, bias, np.array([3]), np.ones(1))
  assert slope.dtype == jnp.bfloat16 and float(slope[0, 0]) == 260


def test_nan_stays_nan(arrays):
  # The training step looks for it.
  x, embedding, bias, labels = arrays
  bias = bias.copy()
  bias[31] = np.nan
  loss, _ = score(config(BLOCK), x, embedding, bias, labels=labels)
  assert np.isnan(loss).all()


def test_heads_pass_labels_on():
  cfg = config(BLOCK)
  params = encoder_reference.make_params(cfg)
  rng = np.random.default_rng(1)
  batch = {
    "masked_positions": rng.integers(0, L, (B, P)),
    "masked_labels": rng.integers(0, V, (B, P)),
    "masked_weights": rng.random((B, P), np.float32),
  }
  hidden = rng.standard_normal((B, L, cfg.width), np.float32)
  predict = jax.jit(masked_lm.predict, static_argnums=0)
  logits = predict(cfg, params, batch, hidden)
  assert logits.shape == (B, P, PADDED)
  terms, metrics = jax.jit(masked_lm.loss, static_argnums=0)(
    cfg, params, batch, hidden
  )
  labels, weights = batch["masked_labels"], batch["masked_weights"]
  loss, right = losses.loss_and_accuracy(logits, labels, weights=weights)
  np.testing.assert_allclose(terms["mlm"], loss, rtol=1e-5)
  np.testing.assert_allclose(metrics["mlm_accuracy"], right)
  # The same for SpanBERT's second head.
  sbo = heads.SboHead(cfg, max_span=4, place_width=6)
  table = masked_lm.token_embedding(params["encoder"])
  place = np.zeros((B, P), np.int32)
  inputs = (hidden[:, :P], hidden[:, -P:], place, table)
  made = jax.jit(sbo.init)(jax.random.key(0), *inputs)
  score = functools.partial(vocabulary_softmax.loss_and_correct, labels=labels)
  ours = jax.jit(sbo.apply, static_argnums=5)(made, *inputs, score)
  expected = losses.loss_and_correct(jax.jit(sbo.apply)(made, *inputs), labels)
  for a, b in zip(ours, expected, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-5)
