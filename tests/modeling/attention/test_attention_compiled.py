"""The kernels, compiled for chips that are not here.

Slow, and skipped without libtpu (extra `tpu`) or JAX's CUDA plugin (extra
`cuda`). No chip is needed.
"""

import importlib.util
import re

import jax
import jax.numpy as jnp
import pytest
from ml_collections import ConfigDict

from helpers import encoder_reference
from maskedlm.modeling import masked_lm
from maskedlm.modeling.attention import layer
from maskedlm.modeling.attention.mask import AttentionMask
from maskedlm.planning import compile, gpus, topologies
from maskedlm.training import sharding

pytestmark = pytest.mark.slow


def needs(package: str):
  return pytest.mark.skipif(
    importlib.util.find_spec(package) is None, reason=f"no {package} here"
  )


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
  devices = compile.tpu_devices(topologies.parse_topology("v5e:4x4"))
  mesh = sharding.make_mesh(
    ConfigDict({"data": 4, "fsdp": 2, "tensor": 2}), devices
  )
  cfg = encoder_reference.config(
    **options,
    width=128,
    num_heads=2,
    max_positions=512,
    dtype="bfloat16",
    attention="auto",
    dropout=0.1,
  )
  params = jax.eval_shape(
    lambda: masked_lm.init(cfg, *jax.random.split(jax.random.key(0)))
  )
  params = jax.tree.map(
    lambda x, s: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s),
    params,
    sharding.tree_shardings(params, mesh),
  )
  ids = jax.ShapeDtypeStruct((8, 512), jnp.int32, sharding=sharding.rows(mesh))
  names = ("input_ids", "token_type_ids", "segment_ids", "positions")

  def loss(params, batch):
    hidden = masked_lm.encode(cfg, params, batch, jax.random.key(0), True)
    return jnp.square(hidden.astype(jnp.float32)).mean()

  with jax.set_mesh(mesh):
    lowered = jax.jit(jax.grad(loss)).lower(params, dict.fromkeys(names, ids))
  text = lowered.compile().as_text()
  kernels = re.findall(r"splash_mha_(\w+?)_segmented", text)
  assert {"fwd", "dq", "dkv"} <= set(kernels)
  # No array of [L, L] outside of the kernels.
  assert not re.search(r"(bf16|f32)\[(\d+,)*512,512\]", text)


needs_cuda = pytest.mark.skipif(
  not gpus.can_compile(), reason="no CUDA plugin for JAX here"
)


@needs_cuda
@pytest.mark.parametrize(
  ("options", "arrays"),
  [
    ({"one_text": True}, r"600,600\]|640,640\]"),
    # Its mask is shared by the heads; here each of two devices has two.
    ({}, r"[2-9],600,600\]|[2-9],640,640\]"),
    ({"window": 128}, r"600,600\]|640,640\]"),
  ],
  ids=["one text", "packed", "window"],
)
def test_cudnn_compiles_for_h200s(options, arrays):
  pytest.importorskip("nvidia.cudnn")  # Not among planning.md's requirements.
  sizes = ConfigDict({"data": 4, "fsdp": 1, "tensor": 2})
  topology = topologies.parse_topology("h200:8")
  mesh = sharding.make_mesh(sizes, gpus.gpu_devices(topology))

  def array(*shape, axes=("data", None, "tensor"), dtype="bfloat16"):
    split = jax.sharding.NamedSharding(
      mesh, jax.sharding.PartitionSpec(*axes[: len(shape)])
    )
    return jax.ShapeDtypeStruct(shape, dtype, sharding=split)

  def run(query, key, value, segments, gradient):
    mask = AttentionMask(segments, **options)
    y, backward = jax.vjp(
      lambda *x: layer.attend(*x, mask, implementation="cudnn"),
      *(query, key, value),
    )
    return y, *backward(gradient)

  x, segments = array(4, 600, 4, 64), array(4, 600, dtype="int32")
  with jax.set_mesh(mesh):
    lowered = jax.jit(run).lower(x, x, x, segments, x)
  made = lowered.compile(compiler_options=gpus.compiler_options())
  text = made.as_text()
  target = (
    'custom_call_target="__cudnn$fmhaScaleBias'
    if not options.get("one_text")
    else 'custom_call_target="__cudnn$fmhaSoftmax'
  )
  assert text.count(target) >= 2  # Forward and backward.
  assert not re.search(arrays, text)
  assert not re.search(r"all-gather|all-reduce|all-to-all", text)
