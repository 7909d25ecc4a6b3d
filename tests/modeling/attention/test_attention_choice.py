"""The choice of an implementation of attention, and why one is refused."""

import dataclasses
import types

import jax
import pytest

from helpers import encoder_reference
from maskedlm.core.errors import ConfigError
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import (
  ModelOptions,
  check_attention,
  encoder_config,
)
from maskedlm.modeling.attention import dispatch, layer, vendor_kernels
from maskedlm.modeling.attention.dispatch import Case, choose_implementation
from maskedlm.training import sharding

CPU = Case("cpu", 512, 64, "float32", 0.0)
GPU = Case("gpu", 512, 64, "bfloat16", 0.0)
TPU = Case("tpu", 512, 64, "bfloat16", 0.0)


@pytest.mark.parametrize(
  ("case", "expected"),
  [
    (CPU._replace(length=128), "xla"),
    (CPU, "blockwise"),
    (CPU._replace(length=8192, alibi=True), "blockwise"),
    (CPU._replace(length=8192, dropout=0.1), "xla"),
    (CPU._replace(length=None), "xla"),
    (GPU, "cudnn"),
    (GPU._replace(length=127), "xla"),
    (GPU._replace(length=128), "cudnn"),
    (GPU._replace(dtype="float32"), "xla"),
    (GPU._replace(dtype="float32", length=4096), "blockwise"),
    (GPU._replace(dropout=0.1), "xla"),
    (GPU._replace(capability=8.0), "cudnn"),
    (GPU._replace(capability=7.5), "xla"),  # A T4.
    (GPU._replace(capability=7.5, length=4096), "blockwise"),
    (GPU._replace(platform="rocm"), "xla"),
    (GPU._replace(platform="rocm", length=4096), "blockwise"),
    (TPU, "splash"),
    (TPU._replace(length=255), "xla"),
    (TPU._replace(length=256), "splash"),
    (TPU._replace(alibi=True), "xla"),
    (TPU._replace(dropout=0.1), "xla"),
  ],
  ids=str,
)
def test_auto(case, expected):
  assert choose_implementation("auto", case) == expected


@pytest.mark.parametrize(
  ("name", "case"),
  [
    ("xla", GPU._replace(alibi=True, dropout=0.5)),
    ("blockwise", CPU._replace(length=13)),
    ("cudnn", GPU._replace(length=13, head_size=128)),
    ("splash", TPU._replace(length=13)),
  ],
)
def test_supported_cases_are_accepted(name, case):
  assert choose_implementation(name, case) == name


@pytest.mark.parametrize(
  ("name", "case", "expected"),
  [
    (
      "blockwise",
      CPU._replace(dropout=0.1),
      r"attention_dropout=0 \(it is 0.1",
    ),
    (
      "cudnn",
      CPU._replace(dtype="bfloat16"),
      r"runs on NVIDIA GPUs, not on CPUs",
    ),
    ("splash", GPU, r"runs on TPUs, not on NVIDIA GPUs"),
    ("splash", TPU._replace(alibi=True), r"position='alibi'.*'blockwise'"),
    ("splash", TPU._replace(dropout=0.2), r"'splash' has no dropout.* 0.2"),
    ("cudnn", GPU._replace(dtype="float32"), r"computes in bfloat16: set"),
    ("cudnn", GPU._replace(head_size=60), r"8, 16, ... 128.*is 60"),
    ("cudnn", GPU._replace(capability=7.0), r"capability 8.0.* has 7.0"),
    ("cudnn", GPU._replace(platform="rocm"), r"NVIDIA GPUs, not on AMD GPUs"),
    ("cudnn", TPU, r"NVIDIA GPUs, not on TPUs"),
  ],
  ids=str,
)
def test_unsupported_cases_are_refused(name, case, expected):
  with pytest.raises(ConfigError, match=expected) as caught:
    choose_implementation(name, case)
  assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["triton", "tokamax", "flash"])
def test_unknown_names_are_refused(name):
  model = ModelOptions(attention=name)
  with pytest.raises(
    ConfigError, match=f"attention='{name}'.*splash"
  ) as caught:
    encoder_config(model, 128, 128)
  assert "\n" not in str(caught.value)


def test_a_config_is_checked():
  cfg = encoder_reference.config(attention="splash")
  check_attention(cfg)  # It may be trained on another machine.
  of_gpus = {"attention": "cudnn", "dtype": "bfloat16"}
  check_attention(encoder_reference.config(**of_gpus, width=16, num_heads=2))
  with pytest.raises(ConfigError, match="runs on TPUs"):
    check_attention(cfg, platform="cpu")
  with pytest.raises(ConfigError, match="attention_dropout=0"):
    check_attention(dataclasses.replace(cfg, attention_dropout=0.1))
  # "auto" chooses xla in training, and may choose another in evaluation.
  cfg = encoder_reference.config(attention="auto", attention_dropout=0.1)
  check_attention(cfg)


def test_names():
  assert ("auto", *layer.FUNCTIONS) == dispatch.IMPLEMENTATIONS
  axes = (*vendor_kernels.ROWS, vendor_kernels.HEADS)
  assert axes == sharding.AXES and vendor_kernels.ROWS == sharding.ROWS


def mesh_of(kind, platform):
  device = jax.sharding.AbstractDevice(kind, 1, platform)
  return jax.sharding.AbstractMesh((8,), ("data",), abstract_device=device)


def test_machine_of_a_mesh():
  assert layer.machine() == {"platform": "cpu"}
  mesh = jax.make_mesh((8,), ("data",))
  with jax.set_mesh(mesh):
    assert layer.machine() == {"platform": "cpu"}
  with jax.sharding.use_abstract_mesh(mesh_of("TPU v5e", "tpu")):
    assert layer.machine() == {"platform": "tpu"}
  with jax.sharding.use_abstract_mesh(mesh_of("NVIDIA H200", "gpu")):
    assert layer.machine() == {
      "platform": "gpu",
      "capability": None,
    }  # Planned.


@pytest.mark.parametrize(
  ("capability", "expected"),
  [
    ("7.5", {"platform": "gpu", "capability": 7.5}),
    ("gfx942", {"platform": "rocm"}),  # JAX calls it a gpu too.
  ],
)
def test_machine_of_a_local_gpu(monkeypatch, capability, expected):
  here = types.SimpleNamespace(
    platform="gpu", device_kind="its name", compute_capability=capability
  )
  monkeypatch.setattr(jax, "devices", lambda: [here])
  assert layer.machine() == expected
  with jax.sharding.use_abstract_mesh(mesh_of("its name", "gpu")):
    assert layer.machine() == expected


def test_an_encoder_refuses_an_unsupported_implementation():
  cfg = encoder_reference.config(attention="cudnn")
  params = encoder_reference.make_params(cfg)
  with pytest.raises(ConfigError, match=r"'cudnn' computes in bfloat16"):
    masked_lm.encode(cfg, params, encoder_reference.make_batch(), None, False)
