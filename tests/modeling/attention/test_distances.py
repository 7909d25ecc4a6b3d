"""DeBERTa's disentangled attention: its terms, packed rows, what is refused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference, stub_objective
from maskedlm.core.errors import ConfigError
from maskedlm.modeling import masked_lm, positions
from maskedlm.modeling.architecture import encoder_config
from maskedlm.modeling.attention import layer
from maskedlm.modeling.attention.mask import AttentionMask

V = 131


def small_config(**model):
  config = stub_objective.make_config(
    "roberta", position="disentangled", type_vocab_size=0, **model
  )
  return encoder_config(config.model, V, 13)


def terms(query, key, of_query, of_key):
  """Returns the sum of both terms by a lookup for each pair of tokens."""
  column = np.arange(query.shape[1])
  rows = positions.distance_rows(column[:, None] - column)
  first = jnp.einsum("BLHK,LSHK->BHLS", query, of_key[rows])
  return first + jnp.einsum("BSHK,LSHK->BHLS", key, of_query[rows])


@pytest.mark.parametrize("length", [1, 13, 129, 520])
def test_terms_of_distances(length):
  rng = np.random.default_rng(0)
  query, key = rng.standard_normal((2, 2, length, 3, 5)).astype(np.float32)
  table = rng.standard_normal((2, 512, 3, 5)).astype(np.float32)
  args = query, key, *table
  ours = jax.jit(layer.distance_scores)(*args)
  np.testing.assert_allclose(ours, terms(*args), atol=1e-4)
  slope = rng.standard_normal(ours.shape).astype(np.float32)

  def gradient(function):
    back = jax.jit(lambda *args: jax.vjp(function, *args)[1](slope))
    return back(*args)

  for found, wanted in zip(
    gradient(layer.distance_scores), gradient(terms), strict=True
  ):
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


def test_scores_and_entropy_by_numpy():
  rng = np.random.default_rng(0)
  query, key = rng.standard_normal((2, 2, 13, 3, 5)).astype(np.float32)
  table = rng.standard_normal((2, 512, 3, 5)).astype(np.float32)
  segments = np.repeat([[1, 2, 0], [1, 1, 0]], [6, 5, 2], axis=1)
  mask = AttentionMask(segments, relative=tuple(table))
  ours = layer.scores(query, key, mask)
  plain = np.einsum("BLHK,BSHK->BHLS", query, key)
  expected = (plain + terms(query, key, *table)) / np.sqrt(3 * 5)
  same = segments[:, None, :, None] == segments[:, None, None, :]
  np.testing.assert_allclose(ours, np.where(same, expected, -1e9), atol=1e-5)
  weights = np.exp(expected) * same
  weights /= weights.sum(axis=-1, keepdims=True)
  logs = np.log(np.where(same, weights, 1))
  np.testing.assert_allclose(
    layer.entropy(query, key, mask), -(weights * logs).sum(-1).mean(1), 1e-4
  )


@pytest.mark.parametrize("model", [{}, {"num_kv_heads": 1}])
def test_a_packed_text_is_read_as_if_alone(model):
  """Positions are relative: the mask is all that packing needs."""
  cfg = small_config(**model)
  params = encoder_reference.make_params(cfg)
  ids = np.random.default_rng(0).integers(5, V, 13)

  @jax.jit
  def compiled(params, batch):
    return masked_lm.encode(cfg, params, batch, None, False)

  def encode(ids, segments):
    batch = {"input_ids": ids[None], "segment_ids": np.array([segments])}
    batch["token_type_ids"] = np.zeros_like(ids[None])
    batch["positions"] = np.arange(len(ids))[None]
    return compiled(params, batch)[0]

  both = encode(ids, [1] * 6 + [2] * 7)
  np.testing.assert_allclose(both[:6], encode(ids[:6], [1] * 6), atol=1e-4)
  np.testing.assert_allclose(both[6:], encode(ids[6:], [1] * 7), atol=1e-4)
  turned = encode(ids[6:][::-1], [1] * 7)[::-1]
  assert np.abs(both[6:] - turned).max() > 0.1  # The order matters.


def test_the_table_learns_and_is_normalised():
  cfg = small_config()
  params = jax.jit(functools.partial(masked_lm.init_encoder, cfg))(
    jax.random.key(0)
  )
  shapes = stub_objective.shapes(params["distances"])
  assert shapes == {
    "position/embedding": (512, 24),
    "norm/scale": (24,),
    "norm/bias": (24,),
  }
  assert "position" not in params["embeddings"]
  ids = np.arange(13)[None] + 5

  def total(params):
    batch = {"input_ids": ids, "segment_ids": ids, "token_type_ids": ids}
    batch["segment_ids"] = jnp.ones_like(ids)
    hidden = masked_lm.encode(cfg, {"encoder": params}, batch, None, False)
    return jnp.sum(hidden[..., 0])

  slope = jax.jit(jax.grad(total))(params)["distances"]["position"]["embedding"]
  seen = np.abs(slope).max(axis=1) > 0
  np.testing.assert_array_equal(np.flatnonzero(seen), np.arange(244, 269))


@pytest.mark.parametrize("name", ["blockwise", "cudnn", "splash"])
def test_kernels_without_its_terms_are_refused(name):
  with pytest.raises(ConfigError, match=r"disentangled.*attention='xla'"):
    small_config(attention=name, attention_dropout=0.0)
