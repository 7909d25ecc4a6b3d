"""The encoder with BERT's options: values, parameters, gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference, encoders
from helpers.encoder_reference import B, L
from maskedlm.modeling.encoder import Encoder

BATCH = encoder_reference.make_batch()


PARAMS = encoders.make_params(encoder_reference.config())


def encode(cfg, batch, *, key=None, params=PARAMS):
  return encoders.encode(cfg, params, batch, key=key)


def gradient(cfg):
  return encoders.gradient(cfg, PARAMS, BATCH)


@pytest.fixture(scope="module")
def hidden():
  return np.asarray(encode(encoder_reference.config(), BATCH))


def test_padding_does_not_affect_the_text(hidden):
  # With other ids and types in the padding, the real positions are equal to the
  # bit, and no entry is NaN.
  rng = np.random.default_rng(1)
  real = BATCH["segment_ids"] > 0
  changed = {
    "input_ids": np.where(real, BATCH["input_ids"], rng.integers(0, 131)),
    "token_type_ids": np.where(real, BATCH["token_type_ids"], 1),
    "segment_ids": BATCH["segment_ids"],
  }
  ours = np.asarray(encode(encoder_reference.config(), changed))
  np.testing.assert_array_equal(ours[real], hidden[real])
  assert np.isfinite(ours).all()
  assert np.abs(ours[~real] - hidden[~real]).max() > 1e-3


def test_parameter_paths_and_shapes():
  N, D, H, K, F, T = 2, 24, 3, 8, 40, 17
  assert encoders.shapes_by_path(encoder_reference.config()) == {
    "embeddings/token/embedding": (256, D),  # 131 padded to 2 * 128.
    "embeddings/position/embedding": (T, D),
    "embeddings/token_type/embedding": (2, D),
    "embeddings/norm/scale": (D,),
    "embeddings/norm/bias": (D,),
    "layers/attention/qkv/kernel": (N, D, 3, H, K),
    "layers/attention/qkv/bias": (N, 3, H, K),
    "layers/attention/out/kernel": (N, H, K, D),
    "layers/attention/out/bias": (N, D),
    "layers/attention_norm/scale": (N, D),
    "layers/attention_norm/bias": (N, D),
    "layers/mlp/up/kernel": (N, D, F),
    "layers/mlp/up/bias": (N, F),
    "layers/mlp/down/kernel": (N, F, D),
    "layers/mlp/down/bias": (N, D),
    "layers/mlp_norm/scale": (N, D),
    "layers/mlp_norm/bias": (N, D),
  }


def test_layers_start_different_from_truncated_normals():
  key, ids = jax.random.key(0), jnp.zeros((1, 1), jnp.int32)
  init = functools.partial(
    Encoder(encoder_reference.config()).init, train=False
  )
  params = jax.jit(init)(key, ids, ids, ids)
  kernel = np.asarray(params["params"]["layers"]["mlp"]["up"]["kernel"])
  assert np.abs(kernel[0] - kernel[1]).max() > 0.01
  assert np.abs(kernel).max() <= 0.04  # Two deviations of 0.02.
  # Standard deviation of a normal truncated at 2: 0.8796 (n = 1920, so 5%).
  assert kernel.std() == pytest.approx(0.8796 * 0.02, rel=0.05)


@pytest.fixture(scope="module")
def dropped_gradient():
  return gradient(encoder_reference.config(**RATES))


RATES = {"dropout": 0.2, "attention_dropout": 0.3}


@pytest.mark.parametrize(
  ("remat", "unroll"), [("none", True), ("dots", True), ("full", False)]
)
def test_the_gradient_does_not_depend_on_how_it_is_computed(
  dropped_gradient, remat, unroll
):
  """The recomputation must drop the same entries."""
  cfg = encoder_reference.config(**RATES, remat=remat, unroll=unroll)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7),
    gradient(cfg),
    dropped_gradient,
  )


def test_the_loop_over_layers_is_unrolled_only_in_training():
  def loops(train, **options):
    cfg = encoder_reference.config(**options)

    def run(params):
      key = jax.random.key(0) if train else None
      return encode(cfg, BATCH, key=key, params=params)

    return jax.jit(run).lower(PARAMS).compile().as_text().count(" while(")

  assert [loops(train) for train in (False, True)] == [1, 1]
  assert [loops(t, unroll=True) for t in (False, True)] == [1, 0]


def test_remat_takes_less_memory_even_if_layers_are_unrolled():
  """XLA:CPU undoes a recomputation that is not in a loop."""
  cfg = {"num_layers": 6, "max_positions": 160, "unroll": True}
  batch = {name: np.ones((4, 160), np.int32) for name in BATCH}
  batch["token_type_ids"] *= 0

  def kept(remat):
    config = encoder_reference.config(**cfg, remat=remat)
    params = encoders.make_params(config)

    def loss(params):
      key = jax.random.key(0)
      return encoders.encode(config, params, batch, None, key=key).sum()

    compiled = jax.jit(jax.grad(loss)).lower(params).compile()
    return compiled.memory_analysis().temp_size_in_bytes

  none, dots, full = map(kept, ("none", "dots", "full"))
  assert dots < 0.6 * none and full < 0.6 * none


def test_bfloat16_computes_over_float32_parameters(hidden):
  cfg = encoder_reference.config(dtype="bfloat16")
  ours = encode(cfg, BATCH)
  assert ours.dtype == jnp.bfloat16
  # 8 bits of mantissa; entries are about 1 in size.
  assert np.abs(np.float32(ours) - hidden).mean() < 0.03
  grads = jax.tree.leaves(gradient(cfg))
  assert {x.dtype for x in grads} == {jnp.dtype("float32")}
  assert all(np.isfinite(x).all() for x in grads)
  assert {x.dtype for x in jax.tree.leaves(encoders.param_shapes(cfg))} == {
    jnp.dtype("float32")
  }


def test_dropout_depends_on_the_key_in_training_only(hidden):
  cfg = encoder_reference.config(dropout=0.2, attention_dropout=0.1)
  np.testing.assert_array_equal(encode(cfg, BATCH), hidden)
  once, again, other = (
    np.asarray(encode(cfg, BATCH, key=jax.random.key(k))) for k in (1, 1, 2)
  )
  np.testing.assert_array_equal(once, again)
  assert np.abs(once - other).max() > 0.1


@pytest.mark.parametrize(
  ("dropout", "attention_dropout", "places"),
  # The weights of attention; embeddings, attention's output and the MLP.
  [(0.0, 0.1, 1), (0.2, 0.0, 3), (0.0, 0.0, 0)],
)
def test_number_of_dropouts(dropout, attention_dropout, places):
  cfg = encoder_reference.config(
    dropout=dropout, attention_dropout=attention_dropout, mlp="gated"
  )

  def apply(params, key):
    ids = jnp.zeros((B, L), jnp.int32)
    return Encoder(cfg).apply(
      {"params": params}, ids, ids, ids, train=True, rngs={"dropout": key}
    )

  text = str(
    jax.make_jaxpr(apply)(encoders.param_shapes(cfg), jax.random.key(0))
  )
  assert text.count("random_bits[") == places  # A loop's body counts once.


def test_layers_drop_different_entries():
  # All 0 except the bias of the MLP: block n computes norm(x + mask_n). With
  # one mask for both blocks an output would take two values, with two it takes
  # 4.
  cfg = encoder_reference.config(dropout=0.5)
  params = jax.tree.map(np.zeros_like, PARAMS)
  params["layers"]["mlp"]["down"]["bias"] += 1
  params["layers"]["mlp_norm"]["scale"] += 1
  params["layers"]["attention_norm"]["scale"] += 1
  ours = encode(cfg, BATCH, key=jax.random.key(3), params=params)
  distinct = [np.unique(np.round(x, 3)).size for x in np.asarray(ours[:, 0])]
  assert max(distinct) == 4
