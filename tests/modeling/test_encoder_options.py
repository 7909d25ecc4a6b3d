"""Options of later encoders, one by one and together, against plain numpy."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference
from helpers.encoder_reference import B, L
from helpers.encoders import encode, make_params, shapes_by_path
from maskedlm.modeling.encoder import Encoder

BATCH = encoder_reference.make_batch()

MODERN = {
  "num_layers": 4,
  "type_vocab_size": 0,
  "position": "rope",
  "rope_theta": 160.0,
  "local_rope_theta": 10.0,
  "local_window": 4,
  "global_every": 3,
  "norm_order": "pre",
  "norm_epsilon": 1e-5,
  "skip_first_norm": True,
  "mlp": "gated",
  "biases": False,
  "scaled_init": True,
}
MOSAIC = {"position": "alibi", "mlp": "gated"}
# 6 heads of 4 share 2 heads of keys and values, as in EuroBERT-610m.
EURO = {
  "type_vocab_size": 0,
  "num_heads": 6,
  "num_kv_heads": 2,
  "position": "rope",
  "rope_theta": 100.0,
  "norm_order": "pre",
  "norm_kind": "rms",
  "embedding_norm": False,
  "norm_epsilon": 1e-5,
  "mlp": "gated",
  "activation": "silu",
  "biases": False,
}
OPTIONS = {
  "rms": {"norm_kind": "rms"},
  "one head of keys": {"num_kv_heads": 1, "position": "alibi"},
  "grouped, windows": {
    "num_heads": 4,
    "num_kv_heads": 2,
    "local_window": 4,
    "global_every": 2,
    "num_layers": 3,
    "causal": True,
  },
  "windows, rope": {
    "local_window": 6,
    "global_every": 2,
    "num_layers": 3,
    "position": "rope",
    "rope_theta": 1000.0,
    "local_rope_theta": 10.0,
  },
  "projected embeddings": {"embedding_width": 10},
  "modern": MODERN,
  "mosaic": MOSAIC,
  "euro": EURO,
}


@functools.cache
def hidden_of(name):
  """Returns the vectors of BATCH with these options."""
  cfg = encoder_reference.config(**OPTIONS[name])
  return encode(cfg, make_params(cfg), BATCH)


# The reference takes one row, head and token at a time.


def by_reference(cfg, params, ids, types, segments):
  p = encoder_reference.as_float64(params)
  x = p["embeddings"]["token"]["embedding"][ids]
  if cfg.position == "learned":
    x = x + p["embeddings"]["position"]["embedding"][: len(ids)]
  if cfg.type_vocab_size:
    x = x + p["embeddings"]["token_type"]["embedding"][types]
  if cfg.embedding_norm:
    x = norm(x, p["embeddings"]["norm"], cfg)
  if cfg.embedding_width:
    x = dense(x, p["project"])
  for n in range(cfg.num_layers):
    layer = jax.tree.map(lambda a, n=n: a[n], p["layers"])
    local = cfg.local_window and n % cfg.global_every != 0
    for name, part in (("attention", attention), ("mlp", mlp)):
      given = layer[f"{name}_norm"]
      if cfg.norm_order == "post":
        x = norm(x + part(x, layer[name], cfg, segments, local), given, cfg)
        continue
      first = cfg.skip_first_norm and n == 0 and name == "attention"
      y = x if first else norm(x, given, cfg)
      x = x + part(y, layer[name], cfg, segments, local)
  return norm(x, p["final_norm"], cfg) if cfg.norm_order == "pre" else x


def dense(x, p):
  return x @ p["kernel"] + p.get("bias", 0)


def norm(x, p, cfg):
  if cfg.norm_kind == "layer":
    x = x - x.mean(axis=-1, keepdims=True)
  x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + cfg.norm_epsilon)
  return x * p["scale"] + p.get("bias", 0)


def mlp(x, p, cfg, segments, local):
  del segments, local
  if cfg.mlp == "plain":
    return dense(encoder_reference.activate(dense(x, p["up"]), cfg), p["down"])
  gate, up = p["gate_up"]["kernel"][:, 0], p["gate_up"]["kernel"][:, 1]
  return dense(encoder_reference.activate(x @ gate, cfg) * (x @ up), p["down"])


def attention(x, p, cfg, segments, local):
  K = cfg.width // cfg.num_heads
  kernels, biases, out_kernel, out_bias = heads_of(p, cfg)
  out = out_bias + np.zeros(x.shape)
  theta = cfg.local_rope_theta if local else cfg.rope_theta
  for h in range(cfg.num_heads):
    query, key, value = (x @ kernels[:, i, h] + biases[i, h] for i in range(3))
    if cfg.position == "rope":
      query, key = turn(query, theta), turn(key, theta)
    for i in range(len(x)):
      scores = {}
      for j in range(len(x)):
        allowed = segments[i] == segments[j]
        allowed &= not local or abs(i - j) <= cfg.local_window / 2
        allowed &= not cfg.causal or j <= i
        if allowed:
          scores[j] = query[i] @ key[j] / math.sqrt(K)
          if cfg.position == "alibi":
            scores[j] -= SLOPES[h] * abs(i - j)
      top = max(scores.values())
      total = sum(math.exp(s - top) for s in scores.values())
      for j, score in scores.items():
        share = math.exp(score - top) / total
        out[i] += share * value[j] @ out_kernel[h]
  return out


def heads_of(p, cfg):
  """Returns [D, 3, H, K] and biases [3, H, K] of q, k and v; [H, K, D], [D]."""
  H, D = cfg.num_heads, cfg.width
  K = D // H
  if not cfg.num_kv_heads:
    kernel, bias, out = p["qkv"]["kernel"], p["qkv"].get("bias", 0), p["out"]
  else:
    query, shared, out = (
      p[f"group_{n}"] for n in ("query", "key_value", "out")
    )
    size = H // cfg.num_kv_heads  # Heads that share one of keys.
    kernel = np.concatenate(
      [
        query["kernel"].reshape(D, 1, H, K),
        np.repeat(shared["kernel"], size, axis=2),
      ],
      axis=1,
    )
    bias = 0
    if cfg.biases:
      bias = np.concatenate(
        [
          query["bias"].reshape(1, H, K),
          np.repeat(shared["bias"], size, axis=1),
        ]
      )
  bias = bias + np.zeros((3, H, K))
  return kernel, bias, out["kernel"].reshape(H, K, D), out.get("bias", 0)


def turn(x, theta):
  """Returns RoPE: pair (i, i + K/2), as a complex number, times e^(i p w)."""
  half = x.shape[1] // 2
  frequency = theta ** (-np.arange(half) / half)
  z = x[:, :half] + 1j * x[:, half:]
  z = z * np.exp(1j * np.arange(len(x))[:, None] * frequency)
  return np.concatenate([z.real, z.imag], axis=1)


SLOPES = [2**-4, 2**-8, 2**-2]  # 3 heads: those of 2, then the first of 4.


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_equals_plain_numpy(name):
  cfg = encoder_reference.config(**OPTIONS[name])
  params = make_params(cfg)
  ours = hidden_of(name)
  for b in range(B):
    row = (BATCH[k][b] for k in ("input_ids", "token_type_ids", "segment_ids"))
    expected = by_reference(cfg, params, *row)
    np.testing.assert_allclose(ours[b], expected, atol=2e-5, err_msg=str(b))


# Masks.


@pytest.mark.parametrize(
  ("kind", "backwards"), [("rope", False), ("learned", True)]
)
def test_causal_tokens_ignore_what_follows_or_precedes(kind, backwards):
  cfg = encoder_reference.config(
    causal=True, position=kind, right_to_left=backwards
  )
  params = make_params(cfg)
  changed = {**BATCH, "input_ids": BATCH["input_ids"].copy()}
  changed["input_ids"][:, 6] += 1
  before, after = (encode(cfg, params, b) for b in (BATCH, changed))
  unseen, seen = np.arange(L) < 6, np.arange(L) >= 6
  if backwards:
    unseen, seen = np.arange(L) > 6, np.arange(L) <= 6
  np.testing.assert_array_equal(after[:, unseen], before[:, unseen])
  assert np.abs(after[0, seen] - before[0, seen]).max(axis=1).min() > 1e-4


@pytest.mark.parametrize("options", [{}, MODERN])
def test_packed_texts_equal_single_ones(options):
  rng = np.random.default_rng(2)
  cfg = encoder_reference.config(**options)
  params = make_params(cfg)
  sizes = (3, 4, 5, 1)
  segments = np.repeat([1, 2, 3, 0], sizes)
  ids, types = rng.integers(1, 131, L), rng.integers(0, 2, L)
  batch = {name: np.zeros((4, L), np.int32) for name in BATCH}
  places = np.tile(np.arange(L), (4, 1))
  for i, segment in enumerate((1, 2, 3)):
    own = segments == segment
    batch["input_ids"][i, : own.sum()] = ids[own]
    batch["token_type_ids"][i, : own.sum()] = types[own]
    batch["segment_ids"][i, : own.sum()] = 1
  batch["input_ids"][3], batch["token_type_ids"][3] = ids, types
  batch["segment_ids"][3] = segments
  places[3] = np.concatenate([np.arange(n) for n in sizes])
  ours = encode(cfg, params, batch, places)
  for i, segment in enumerate((1, 2, 3)):
    own = segments == segment
    np.testing.assert_allclose(ours[3, own], ours[i, : own.sum()], atol=1e-5)


# Parameters.


def test_parameters_that_options_add_and_remove():
  plain = shapes_by_path(encoder_reference.config())
  mosaic = shapes_by_path(encoder_reference.config(**MOSAIC))
  assert set(plain) ^ set(mosaic) == {
    "embeddings/position/embedding",
    "layers/mlp/up/kernel",
    "layers/mlp/up/bias",
    "layers/mlp/gate_up/kernel",
  }
  small = shapes_by_path(encoder_reference.config(embedding_width=10))
  assert set(small) ^ set(plain) == {"project/kernel", "project/bias"}
  assert small["project/kernel"] == (10, 24)
  assert small["embeddings/token/embedding"] == (256, 10)
  assert small["embeddings/norm/scale"] == (10,)
  rms = shapes_by_path(encoder_reference.config(norm_kind="rms"))
  assert not any("norm/bias" in path for path in rms)


def test_grouped_heads_by_another_implementation():
  cfg = encoder_reference.config(**OPTIONS["grouped, windows"])
  other = dataclasses.replace(cfg, attention="blockwise")
  ours = encode(other, make_params(cfg), BATCH)
  np.testing.assert_allclose(ours, hidden_of("grouped, windows"), atol=1e-5)


def test_scaled_init():
  # 8 layers: out and down have a quarter of the deviation of the others.
  cfg = encoder_reference.config(num_layers=8, width=48, scaled_init=True)
  ids = jnp.zeros((1, 1), jnp.int32)

  @jax.jit
  def init(key):
    return Encoder(cfg).init(key, ids, ids, ids, train=False)["params"]

  made = init(jax.random.key(0))["layers"]
  deviation = {
    path: float(np.std(made[path[0]][path[1]]["kernel"])) / 0.8796
    for path in (
      ("attention", "qkv"),
      ("attention", "out"),
      ("mlp", "up"),
      ("mlp", "down"),
    )
  }
  np.testing.assert_allclose(
    list(deviation.values()), [0.02, 0.005, 0.02, 0.005], rtol=0.05
  )


def test_one_block_is_compiled_for_all_layers():
  def text(num_layers):
    cfg = encoder_reference.config(**{**MODERN, "num_layers": num_layers})
    params = make_params(cfg)
    ids = BATCH["input_ids"]
    apply = Encoder(cfg).apply
    return str(
      jax.make_jaxpr(
        lambda p: apply({"params": p}, ids, ids, ids, train=False)
      )(params)
    )

  assert text(3).count("dot_general") == text(7).count("dot_general") > 0


def test_bfloat16_is_near():
  cfg = encoder_reference.config(**MODERN)
  params = make_params(cfg)
  exact = hidden_of("modern")
  ours = encode(dataclasses.replace(cfg, dtype="bfloat16"), params, BATCH)
  assert ours.dtype == jnp.bfloat16
  assert np.abs(np.float32(ours) - exact).mean() < 0.05
