"""The Triton kernel, interpreted: what it drops, visits, over a mesh."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from helpers import attention_reference as by_hand
from helpers import encoder_reference as reference
from maskedlm.modeling import dropout_bits, masked_lm
from maskedlm.modeling.attention import dispatch, layer, triton
from maskedlm.modeling.attention.mask import Sight, ranges
from maskedlm.modeling.attention.triton import Drop, Tile, visits
from maskedlm.training import sharding

COUNT = round(0.3 * 2**32)
KEY = jax.random.key(7)
SIZES = {"tiles": (Tile(16, 8), Tile(32, 16)), "interpret": True}


def test_visits_by_hand():
  # Blocks of 4, steps of 2. Texts of 5 and 3 tokens, then padding.
  segments = jnp.array([[1, 1, 1, 1, 1, 2, 2, 2, 0, 0, 0, 0]])

  def visited(**options):
    keys, queries = visits(*ranges(Sight(segments, **options)), 4, 2)
    return keys[0].tolist(), queries[0].tolist()

  # The first block sees columns 0 to 4: steps 0 to 2. The second 0 to 7.
  assert visited() == ([[0, 3], [0, 4], [4, 6]],) * 2
  # Causal: keys 0 to 3 are seen by queries 0 to 4, keys 4 to 7 by 4 to 7.
  keys, queries = visited(causal=True)
  assert keys == [[0, 2], [0, 4], [4, 6]]
  assert queries == [[0, 3], [2, 4], [4, 6]]
  # One other on each side: columns 4 to 7 see 3 to 5, 4 to 5, 5 to 7.
  assert visited(window=2) == ([[0, 3], [1, 4], [4, 6]],) * 2


def expected(arrays, sight):
  """What plain gives with weights dropped by random_words(KEY)."""
  *args, gradient = arrays

  def through(weights):
    words = dropout_bits.random_words(KEY, weights.shape)
    scale = 2**32 / (2**32 - COUNT)
    return jnp.where(words >= np.uint32(COUNT), weights * scale, 0)

  y, backward = jax.vjp(lambda *args: layer.plain(*args, sight, through), *args)
  return y, jnp.stack(backward(gradient), axis=2)


def computed(arrays, sight, **sizes):
  *args, gradient = arrays
  drop = Drop(dropout_bits.seeds(KEY), COUNT)

  @jax.jit
  def run(qkv, gradient):
    y, backward = jax.vjp(
      lambda qkv: triton.attend(qkv, sight, drop, **sizes), qkv
    )
    return y, *backward(gradient)

  return run(jnp.stack(args, axis=2), gradient)


# In one block of each, in two of forward's and one of backward's, in 4 and 2.
@pytest.mark.parametrize("length", [13, 20, 37])
def test_drops_what_plain_drops(length):
  sight = Sight(jnp.asarray(by_hand.rows(length)), causal=True)
  arrays = by_hand.arrays(length)
  ours = computed(arrays, sight, **SIZES)
  for x, y in zip(ours, expected(arrays, sight), strict=True):
    np.testing.assert_allclose(x, y, atol=1e-5)


def test_over_a_mesh():
  # Rows over 4 devices, heads over 2: each drops what belongs to its part.
  rng = np.random.default_rng(0)
  arrays = [rng.standard_normal((4, 13, 2, 8), np.float32) for _ in range(4)]
  segments = jnp.asarray(1 + np.arange(13) // [[3], [5], [7], [14]])
  sight = Sight(segments, alibi=True)
  sizes = ConfigDict({"data": 2, "fsdp": 2, "tensor": 2})
  mesh = sharding.make_mesh(sizes, jax.devices())
  with jax.set_mesh(mesh):
    ours = computed(arrays, sight, **SIZES)
  for x, y in zip(ours, expected(arrays, sight), strict=True):
    np.testing.assert_allclose(x, y, atol=1e-5)


def test_an_encoder_trains_by_it(monkeypatch):
  # Interpreted, without dropout: the gradients of the plain one.
  call = triton.pl.pallas_call
  monkeypatch.setattr(
    triton.pl,
    "pallas_call",
    lambda *args, **options: call(*args, **{**options, "interpret": True}),
  )
  monkeypatch.setattr(layer.choice, "choose", lambda asked, case: asked)
  batch = reference.make_batch()
  batch["positions"] = np.broadcast_to(np.arange(13), (5, 13))  # Packed.

  def gradient(name):
    options = {"position": "rope", "local_window": 4, "global_every": 2}
    cfg = reference.config(**options, remat="dots", attention=name)
    params = masked_lm.init(cfg, *jax.random.split(KEY))
    params = reference.randomise(params)

    def loss(params):
      hidden = masked_lm.encode(cfg, params, batch, KEY, True)
      return jnp.square(hidden).mean()

    return jax.jit(jax.grad(loss))(params)

  for x, y in zip(
    *(jax.tree.leaves(gradient(name)) for name in ("xla", "triton")),
    strict=True,
  ):
    np.testing.assert_allclose(x, y, atol=1e-5)


def test_it_serves_what_the_others_do_not():
  case = dispatch.Case(
    "gpu", 128, 64, "bfloat16", 0.1, alibi=True, windows=True
  )
  assert dispatch.choose("triton", case) == "triton"
