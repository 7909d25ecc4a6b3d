"""Describes GPUs to XLA, so that it compiles for them without one.

JAX's CUDA plugin compiles without a GPU if it is given what it would ask the
driver for. Kernels can't be timed then (NO_AUTOTUNING), so XLA chooses them by
its own cost model; in a run it picks the fastest of several.
"""

import importlib
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax

from maskedlm.core.errors import ConfigError
from maskedlm.planning.topologies import Topology
from maskedlm.runtime import xla_flags
from maskedlm.runtime.chips import Chip

INSTALL = "pip install 'maskedlm[cuda]'"
NO_AUTOTUNING = {"xla_gpu_autotune_level": "0"}  # No GPU times kernels.


class Target(NamedTuple):
  """The properties of a GPU that XLA's choices depend on."""

  name: str
  capability: str
  cores: int  # Streaming multiprocessors.
  lanes: int  # Float32 lanes of a core.
  clock: float  # GHz.
  cache: int  # L2, bytes.
  shared: int  # Shared memory of a core, bytes; a block gets 1,024 less.


# Source: openxla/xla, xla/backends/gpu/target_config/specs (a100_sxm_80,
# h100_sxm, h200; 2026), read from such GPUs. Memory and bandwidth: chips.py.
_HOPPER = (
  "major: 9 feature_extension: ACCELERATED_FEATURES",
  *(132, 128, 1.98, 50 * 2**20, 228 * 2**10),
)
TARGETS = {
  "a100": Target(
    "NVIDIA A100-SXM4-80GB", "major: 8", 108, 64, 1.41, 40 * 2**20, 164 * 2**10
  ),
  "h100": Target("NVIDIA H100 80GB HBM3", *_HOPPER),
  "h200": Target("NVIDIA H200", *_HOPPER),
}


def target_config(chip: Chip) -> str:
  """Returns XLA's GpuTargetConfigProto of a GPU, as text.

  Values common to all TARGETS are from the table of technical specifications by
  compute capability in CUDA's programming guide. The cuDNN version is the
  oldest that the plugin of jax 0.10.2 accepts.
  """
  target = TARGETS[chip.name]
  return f"""
gpu_device_info {{
  cuda_compute_capability {{ {target.capability} }}
  core_count: {target.cores}
  fpus_per_core: {target.lanes}
  clock_rate_ghz: {target.clock}
  device_memory_size: {chip.hbm_bytes}
  memory_bandwidth: {chip.hbm_bandwidth:.0f}
  l2_cache_size: {target.cache}
  shared_memory_per_core: {target.shared}
  shared_memory_per_block_optin: {target.shared - 1024}
  shared_memory_per_block: 49152
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  threads_per_warp: 32
  threads_per_core_limit: 2048
  threads_per_block_limit: 1024
  thread_dim_limit_x: 1024
  thread_dim_limit_y: 1024
  thread_dim_limit_z: 64
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 12 }}
device_description_str: "{target.name}"
"""


def can_compile() -> bool:
  """Returns whether the CUDA plugin is installed."""
  return bool(xla_flags.cuda_plugin())


def gpu_devices(topology: Topology) -> list[Any]:
  """Returns the topology's devices to compile for; they can't hold arrays.

  Raises:
    ConfigError: the plugin is for another jax, is incomplete, or refuses the
      target.
  """
  from jax.experimental import topologies

  plugin = xla_flags.cuda_plugin()
  version = importlib.import_module(f"{plugin}.version").__version__
  if version != jax.lib.__version__:
    raise ConfigError(
      f"--topology={topology.name}: {plugin} {version} is not for jaxlib "
      f"{jax.lib.__version__}: {INSTALL} installs the right one."
    )
  count = topology.num_chips
  inside = min(count, topology.chip.node_size)
  try:
    description = topologies.get_topology_desc(
      platform="cuda",
      target_config=target_config(topology.chip),
      # Groups of linked hosts x hosts of a group x GPUs of a host.
      topology=f"{count // inside}x1x{inside}",
    )
  except NotImplementedError:
    raise ConfigError(
      f"--topology={topology.name}: JAX finds {plugin}, but not its compiler: "
      f"{INSTALL} installs both."
    ) from None
  except jax.errors.JaxRuntimeError as error:
    raise ConfigError(
      f"--topology={topology.name}: the CUDA plugin can't compile for it: "
      f"{str(error).splitlines()[0]}"
    ) from None
  return list(description.devices)


def compiler_options(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
  """Returns a run's XLA flags for GPUs, without those that the user has set.

  They are passed with the program, as XLA_FLAGS is read once in a process.
  """
  flags = xla_flags.FLAGS["gpu"][1] | NO_AUTOTUNING
  missing = xla_flags.missing_flags(flags, environ.get("XLA_FLAGS", ""))
  booleans = {"true": "True", "false": "False"}  # As jaxlib expects.
  return {name: booleans.get(value, value) for name, value in missing.items()}


def memory_share(environ: Mapping[str, str] = os.environ) -> float:
  """Returns the share of a GPU's memory that JAX takes, all that a run can use.

  Raises:
    ConfigError: an environment variable isn't a share.
  """
  for name in ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"):
    if text := environ.get(name):
      try:
        share = float(text)
      except ValueError:
        share = 0.0
      if not 0 < share <= 1:
        raise ConfigError(f"{name}={text}: expected a share, such as 0.9.")
      return share
  return 0.75
