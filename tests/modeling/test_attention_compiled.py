"""The kernels, compiled or lowered for chips that are not here.

Slow, and skipped without libtpu (extra `tpu`) or tokamax: neither needs a chip.
"""

import importlib.util
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from jax import export
from ml_collections import ConfigDict

from maskedlm import sharding
from maskedlm.modeling import attention, mlm
from maskedlm.modeling.positions import Sight
from maskedlm.planning import chips, compiling

pytestmark = pytest.mark.slow


def needs(package: str):
  return pytest.mark.skipif(
    importlib.util.find_spec(package) is None, reason=f"no {package} here"
  )


def test_bert_base_of_8192_tokens_is_linear():
  # Compiled for this CPU; what a GPU's compiler reserves may differ.
  def temporary(length):
    cfg = reference.config(
      vocab_size=30_522,
      num_layers=12,
      width=768,
      num_heads=12,
      mlp_width=3072,
      max_positions=length,
      dropout=0.1,
      attention="blockwise",
    )
    params = jax.eval_shape(
      lambda: mlm.init(cfg, *jax.random.split(jax.random.key(0)))
    )
    names = ("input_ids", "token_type_ids", "segment_ids")
    ids = jax.ShapeDtypeStruct((1, length), jnp.int32)

    def loss(params, batch):
      hidden = mlm.encode(cfg, params, batch, jax.random.key(0), True)
      return jnp.square(hidden).mean()

    lowered = jax.jit(jax.grad(loss)).lower(params, dict.fromkeys(names, ids))
    analysis = lowered.compile().memory_analysis()
    print(length, analysis.temp_size_in_bytes)  # For docs/attention.md.
    return analysis.temp_size_in_bytes

  short, long = temporary(2048), temporary(8192)
  assert long < 4.1 * short
  # In float32 an array [L, D] is 25 MB, and [L, F] 101 MB. A layer keeps about
  # 20 of D and 4 of F: 0.9 GB. The scores of one layer would be 3.2 GB.
  assert long < 12 * (20 * 25.2e6 + 4 * 101e6) + 1e9


@needs("libtpu")
@pytest.mark.parametrize(
  "options",
  [
    {},
    {"causal": True},
    {"position": "rope", "local_window": 128, "global_every": 2},
  ],
  ids=["all", "causal", "windows"],
)
def test_an_encoder_compiles_for_v5e_with_splash(options):
  # Rows over 8 chips, heads over 2: one row and one head of 64 on each.
  devices = compiling.tpu_devices(chips.parse("v5e:4x4"))
  mesh = sharding.make_mesh(
    ConfigDict({"data": 4, "fsdp": 2, "tensor": 2}), devices
  )
  cfg = reference.config(
    **options,
    width=128,
    num_heads=2,
    max_positions=512,
    dtype="bfloat16",
    attention="auto",
    dropout=0.1,
  )
  params = jax.eval_shape(
    lambda: mlm.init(cfg, *jax.random.split(jax.random.key(0)))
  )
  params = jax.tree.map(
    lambda x, s: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s),
    params,
    sharding.tree_shardings(params, mesh),
  )
  ids = jax.ShapeDtypeStruct((8, 512), jnp.int32, sharding=sharding.rows(mesh))
  names = ("input_ids", "token_type_ids", "segment_ids", "positions")

  def loss(params, batch):
    hidden = mlm.encode(cfg, params, batch, jax.random.key(0), True)
    return jnp.square(hidden.astype(jnp.float32)).mean()

  with jax.set_mesh(mesh):
    lowered = jax.jit(jax.grad(loss)).lower(params, dict.fromkeys(names, ids))
  text = lowered.compile().as_text()
  kernels = re.findall(r"splash_mha_(\w+?)_segmented", text)
  assert {"fwd", "dq", "dkv"} <= set(kernels)
  # Nothing of [L, L] but what the kernels keep to themselves.
  assert not re.search(r"(bf16|f32)\[(\d+,)*512,512\]", text)


@needs("tokamax")
@pytest.mark.parametrize("window", [0, 128])
def test_tokamax_lowers_for_hopper(monkeypatch, window):
  from tokamax._src import gpu_utils

  # It asks what GPU there is.
  monkeypatch.setattr(gpu_utils, "_compute_capability", lambda *_: 9.0)
  monkeypatch.setattr(gpu_utils, "has_mosaic_gpu_support", lambda *_: True)
  x = jax.ShapeDtypeStruct((2, 300, 3, 64), jnp.bfloat16)
  segments = jnp.asarray(1 + np.arange(300) // [[100], [300]])

  def run(query, key, value, gradient):
    sight = Sight(segments, window=window, is_local=jnp.array(True))
    y, backward = jax.vjp(
      lambda *x: attention.attend(*x, sight, implementation="tokamax"),
      *(query, key, value),
    )
    return y, *backward(gradient)

  made = export.export(
    jax.jit(run),
    platforms=["cuda"],
    disabled_checks=[export.DisabledSafetyCheck.custom_call("mosaic_gpu_v2")],
  )(x, x, x, x)
  assert [y.shape for y in made.out_avals] == [x.shape] * 4
  # Forward, and the kernels of both halves of backward.
  assert made.mlir_module().count("@mosaic_gpu_v2") >= 3
