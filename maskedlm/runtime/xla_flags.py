"""XLA flags of a run by platform, each with its reason.

`set_up` puts FLAGS into the environment before JAX starts a backend
(startup.connected; planning/compile.py before it compiles for TPUs); flags that
the user has set are kept. All but the last concern collectives, so they matter
only with several devices; none of them has been timed. `step_options` are
compiler options of the train step alone (step.over_mesh), by device_kind, as
not every TPU supports them.

A flag that XLA does not know ends the process, so a new release may need a
change here: tests/runtime/test_xla_flags.py starts JAX with the GPU flags;
libtpu 0.0.42.1 (jax 0.10.2) accepted the TPU flags.
"""

import glob
import importlib.util
import os
import re
from collections.abc import Mapping, MutableMapping

# platform -> (environment variable, flags). Sources: for GPUs,
# docs.jax.dev/en/latest/gpu_performance_tips and NVIDIA's JAX images, which set
# this flag; for TPUs, MaxText's training scripts (end_to_end/tpu).
FLAGS = {
  "gpu": (
    "XLA_FLAGS",
    # Gradients are summed over GPUs while backward goes on.
    {"xla_gpu_enable_latency_hiding_scheduler": "true"},
  ),
  "tpu": (
    "LIBTPU_INIT_ARGS",
    {
      # Collectives run beside the matmuls that they are fused with.
      "xla_tpu_enable_async_collective_fusion": "true",
      # The same for all-gathers, which mesh.fsdp needs for each parameter.
      "xla_tpu_enable_async_collective_fusion_fuse_all_gather": "true",
      # A collective may overlap with several matmuls.
      "xla_tpu_enable_async_collective_fusion_multiple_steps": "true",
      # The core computes while a collective is under way.
      "xla_tpu_overlap_compute_collective_tc": "true",
      # With mesh.fsdp=16 a layer's matmuls would each be done in sixteen parts,
      # added up in memory (docs/results/scaling.md); then for the gradients.
      "xla_tpu_enable_windowed_einsum_for_all_gather": "false",
      "xla_tpu_enable_windowed_einsum_for_reduce_scatter": "false",
      # The sum of gradients starts before the last one is computed; then where
      # gradients differ in size, as here.
      "xla_tpu_enable_data_parallel_all_reduce_opt": "true",
      "xla_tpu_data_parallel_opt_different_sized_ops": "true",
      # The compiler recurses over what is fused into a matmul: with dropout of
      # the attention weights, on v6e, it overflows the default of 64 kB
      # (SIGSEGV STACK OVERFLOW, libtpu 0.0.42.1).
      "fibers_default_thread_stack_size": "1048576",
    },
  ),
}
_OF_TPUS = {
  # With the next two, a layer's gradients are summed over chips while those of
  # the layer before are computed: they overlap with its matmuls, and
  "xla_enable_async_all_reduce": "true",
  "xla_tpu_enable_async_collective_fusion_fuse_all_reduce": "true",
  # XLA does not merge the sums of all layers, and wait for the last.
  "xla_jf_crs_combiner_threshold_in_bytes": "4194304",
}
# device_kind -> compiler options of a train step, for that program alone. None
# for v4, which would run out of its 16 MB of vmem (BERT-base).
STEP_OPTIONS = {
  "cpu": {
    # XLA uses half of AVX-512's vectors otherwise, for old CPUs that slow down
    # with whole ones (docs/results/performance.md); others are not affected.
    "xla_cpu_prefer_vector_width": "512",
    # Otherwise XLA copies many parameters and moments, on one thread, before it
    # updates them in place: 5% of a short step of fine-tuning. jax.jit does not
    # take "true".
    "xla_cpu_copy_insertion_use_region_analysis": "True",
  },
  **dict.fromkeys(("TPU v5 lite", "TPU v5e", "TPU v5", "TPU v5p"), _OF_TPUS),
  **dict.fromkeys(("TPU v6 lite", "TPU v6e", "TPU7x"), _OF_TPUS),
}

# Otherwise XLA:GPU launches kernels as graphs, and traces show only those.
FOR_PROFILES = "--xla_gpu_enable_command_buffer="

CUDA_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")


def step_options(
  kind: str, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
  """Returns jax.jit's compiler_options of a train step on a device_kind.

  Flags that the user has set, in XLA_FLAGS or LIBTPU_INIT_ARGS, are left out.
  """
  given = " ".join(
    environ.get(name, "") for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
  )
  return missing_flags(STEP_OPTIONS.get(kind, {}), given)


def missing_flags(flags: Mapping[str, str], given: str) -> dict[str, str]:
  """Returns the flags that `given` does not set."""
  return {
    name: value
    for name, value in flags.items()
    if not re.search(rf"--{name}(=|\s|$)", given)
  }


def set_up(environ: MutableMapping[str, str], platform: str = "") -> str:
  """Adds a platform's flags, or JAX's; returns a line about it, or ""."""
  platform = platform or find_platform(environ)
  if platform not in FLAGS:
    return ""
  variable, flags = FLAGS[platform]
  given = environ.get(variable, "")
  added = " ".join(f"--{k}={v}" for k, v in missing_flags(flags, given).items())
  if not added:
    return ""
  environ[variable] = f"{given} {added}".strip()
  return f"added to {variable}: {added} (see maskedlm/runtime/xla_flags.py)"


def set_up_profile(environ: MutableMapping[str, str]) -> None:
  """Adds FOR_PROFILES to environ on a GPU, so that traces show its kernels."""
  given = environ.get("XLA_FLAGS", "")
  if find_platform(environ) == "gpu" and FOR_PROFILES not in given:
    environ["XLA_FLAGS"] = f"{given} {FOR_PROFILES}".strip()


def find_platform(environ: MutableMapping[str, str]) -> str:
  """Predicts the platform that JAX will use: cpu, gpu or tpu."""
  first = environ.get("JAX_PLATFORMS", "").split(",")[0]
  if first:
    return {"cuda": "gpu"}.get(first, first)
  if has_tpu():
    return "tpu"
  if cuda_plugin():
    return "gpu"
  return "cpu"


def has_tpu() -> bool:
  """Returns whether this machine has a TPU and libtpu."""
  return bool(
    importlib.util.find_spec("libtpu")
    and (glob.glob("/dev/accel*") or glob.glob("/dev/vfio/[0-9]*"))
  )


def cuda_plugin() -> str:
  """Returns the package of JAX's CUDA plugin; "" if none is installed."""
  return next(filter(importlib.util.find_spec, CUDA_PLUGINS), "")
