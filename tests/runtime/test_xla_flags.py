"""XLA flags: each is known to XLA and has a reason; the user's flags win."""

import os
import subprocess
import sys

import pytest

from maskedlm.runtime import chips, xla_flags

GPU = "--xla_gpu_enable_latency_hiding_scheduler"


def test_a_platforms_flags_are_added_once():
  environ = {"JAX_PLATFORMS": "cuda,cpu", "XLA_FLAGS": "--xla_dump_to=/x"}
  line = xla_flags.set_up(environ)
  assert environ["XLA_FLAGS"] == f"--xla_dump_to=/x {GPU}=true"
  assert line.startswith(f"added to XLA_FLAGS: {GPU}=true (")
  before = dict(environ)
  assert xla_flags.set_up(environ) == "" and environ == before
  environ = {"JAX_PLATFORMS": "tpu"}
  xla_flags.set_up(environ)
  assert set(environ) == {"JAX_PLATFORMS", "LIBTPU_INIT_ARGS"}
  assert environ["LIBTPU_INIT_ARGS"].count("=true") == 6
  assert environ["LIBTPU_INIT_ARGS"].count("=false") == 2
  assert "--fibers_default_thread_stack_size=" in environ["LIBTPU_INIT_ARGS"]


def test_a_profile_shows_each_kernel_of_a_gpu():
  environ = {"JAX_PLATFORMS": "cuda", "XLA_FLAGS": f"{GPU}=true"}
  for _ in range(2):
    xla_flags.set_up_profile(environ)
    assert environ["XLA_FLAGS"] == (
      f"{GPU}=true --xla_gpu_enable_command_buffer="
    )
  environ = {"JAX_PLATFORMS": "cpu"}
  xla_flags.set_up_profile(environ)
  assert "XLA_FLAGS" not in environ


@pytest.mark.parametrize(
  "given", [f"{GPU}=false", f"--xla_dump_to=/x {GPU}", f"{GPU} --xla_a=1"]
)
def test_the_users_flags_are_kept(given):
  environ = {"JAX_PLATFORMS": "cuda", "XLA_FLAGS": given}
  assert xla_flags.set_up(environ) == ""
  assert environ["XLA_FLAGS"] == given


def test_a_flag_whose_name_is_a_prefix_is_still_added():
  flag = "--xla_tpu_enable_async_collective_fusion"
  given = f"{flag}_fuse_all_gather=false"
  environ = {"JAX_PLATFORMS": "tpu", "LIBTPU_INIT_ARGS": given}
  xla_flags.set_up(environ)
  assert environ["LIBTPU_INIT_ARGS"].startswith(f"{given} {flag}=true ")
  assert "fuse_all_gather=true" not in environ["LIBTPU_INIT_ARGS"]


def test_the_cpu_has_no_flags_of_its_own(monkeypatch):
  environ = {"JAX_PLATFORMS": "cpu"}
  assert xla_flags.set_up(environ) == ""
  assert environ == {"JAX_PLATFORMS": "cpu"}
  # Without JAX_PLATFORMS, the installed plugins decide.
  monkeypatch.setattr(xla_flags.importlib.util, "find_spec", lambda name: None)
  assert xla_flags.find_platform({}) == "cpu"
  monkeypatch.setattr(
    xla_flags.importlib.util, "find_spec", lambda name: name.startswith("jax")
  )
  assert xla_flags.find_platform({}) == "gpu"
  assert xla_flags.find_platform({"JAX_PLATFORMS": "cpu"}) == "cpu"


@pytest.mark.parametrize(
  ("device", "expected"),
  [("", "gpu"), ("/dev/accel*", "tpu"), ("/dev/vfio/[0-9]*", "tpu")],
)
def test_libtpu_without_a_tpu_is_ignored(monkeypatch, device, expected):
  """It may be installed for `maskedlm plan`, beside a CUDA plugin."""
  monkeypatch.setattr(xla_flags.importlib.util, "find_spec", lambda name: name)
  monkeypatch.setattr(
    xla_flags.glob, "glob", lambda pattern: [pattern] * (pattern == device)
  )
  assert xla_flags.find_platform({}) == expected


def test_step_options_are_those_of_the_chip():
  tpus = {
    kind
    for kind in chips.PEAK_FLOPS
    if kind.startswith(("TPU v5", "TPU v6", "TPU7x"))
  }
  assert set(xla_flags.STEP_OPTIONS) == tpus | {"cpu"}
  for kind in tpus:
    options = xla_flags.step_options(kind, {})
    assert options["xla_jf_crs_combiner_threshold_in_bytes"] == "4194304"
  for kind in ("TPU v4", "NVIDIA H200"):  # A v4 would run out of vmem.
    assert not xla_flags.step_options(kind, {})
  width = "xla_cpu_prefer_vector_width"
  copies = {"xla_cpu_copy_insertion_use_region_analysis": "True"}
  assert xla_flags.step_options("cpu", {}) == {width: "512", **copies}
  narrow = {"XLA_FLAGS": f"--{width}=256"}
  assert xla_flags.step_options("cpu", narrow) == copies
  given = {"LIBTPU_INIT_ARGS": "--xla_enable_async_all_reduce=false"}
  # The user's flag is kept.
  kept = xla_flags.step_options("TPU v5 lite", given)
  assert len(kept) == 2 and "xla_enable_async_all_reduce" not in kept


def test_jax_starts_with_the_gpu_flags():
  # jaxlib for CPUs knows them too; an unknown flag would end the process.
  _, flags = xla_flags.FLAGS["gpu"]
  given = " ".join(f"--{name}={value}" for name, value in flags.items())
  environ = {**os.environ, "XLA_FLAGS": given, "JAX_PLATFORMS": "cpu"}
  code = "import jax; jax.devices()"
  subprocess.run([sys.executable, "-c", code], env=environ, check=True)
