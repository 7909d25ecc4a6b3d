"""GPUs that aren't here, described to XLA so that it compiles for them.

JAX's CUDA plugin compiles without a GPU if it is told what it would ask the
driver. Its kernels can't be timed then (NO_AUTOTUNING), so XLA takes them by a
model of its own; in a run it picks the fastest of several.
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
NO_AUTOTUNING = xla_flags.Flag(
  "xla_gpu_autotune_level", "0", "there is nothing to time kernels on"
)


class Target(NamedTuple):
  """What differs between GPUs, as far as XLA's choices depend on it."""

  name: str
  capability: str
  cores: int  # Streaming multiprocessors.
  lanes: int  # Of float32 a core.
  clock: float  # GHz.
  cache: int  # L2, bytes.
  shared: int  # Bytes a core, of which a block can have 1,024 less.


# Read off such GPUs: openxla/xla, xla/backends/gpu/target_config/specs
# (a100_sxm_80, h100_sxm, h200; 2026). Memory and bandwidth are chips.py's.
TARGETS = {
  "a100": Target(
    "NVIDIA A100-SXM4-80GB", "major: 8", 108, 64, 1.41, 40 * 2**20, 164 * 2**10
  ),
  "h100": Target(
    "NVIDIA H100 80GB HBM3",
    "major: 9 feature_extension: ACCELERATED_FEATURES",
    *(132, 128, 1.98, 50 * 2**20, 228 * 2**10),
  ),
  "h200": Target(
    "NVIDIA H200",
    "major: 9 feature_extension: ACCELERATED_FEATURES",
    *(132, 128, 1.98, 50 * 2**20, 228 * 2**10),
  ),
}


def target_config(chip: Chip) -> str:
  """XLA's GpuTargetConfigProto of a GPU, as text.

  What A100 and H100 have in common is of CUDA's programming guide, table of
  technical specifications by compute capability. cuDNN is the oldest that the
  plugin of jax 0.10.2 takes.
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
  """Is the CUDA plugin installed?"""
  return bool(xla_flags.cuda_plugin())


def gpu_devices(topology: Topology) -> list[Any]:
  """Devices to compile for; they can hold nothing.

  Raises:
    ConfigError: the plugin is another jax's, a part of it is missing, or it
      refuses the target.
  """
  from jax.experimental import topologies

  plugin = xla_flags.cuda_plugin()
  version = importlib.import_module(f"{plugin}.version").__version__
  if version != jax.lib.__version__:
    raise ConfigError(
      f"--topology={topology.name}: {plugin} {version} is not for jaxlib "
      f"{jax.lib.__version__}: {INSTALL} brings the one that is."
    )
  count = topology.num_chips
  inside = min(count, topology.chip.node_size)
  try:
    found = topologies.get_topology_desc(
      platform="cuda",
      target_config=target_config(topology.chip),
      # Groups of hosts that share links x hosts of one x GPUs of a host.
      topology=f"{count // inside}x1x{inside}",
    )
  except NotImplementedError:
    raise ConfigError(
      f"--topology={topology.name}: JAX finds {plugin}, but no compiler of it: "
      f"{INSTALL} brings both."
    ) from None
  except jax.errors.JaxRuntimeError as error:
    raise ConfigError(
      f"--topology={topology.name}: the CUDA plugin can't compile for it: "
      f"{str(error).splitlines()[0]}"
    ) from None
  return list(found.devices)


def compiler_options(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
  """XLA's flags for GPUs as in a run, but what the user has set there.

  Given with the program, not in XLA_FLAGS: that is read once in a process.
  """
  flags = *xla_flags.FLAGS["gpu"][1], NO_AUTOTUNING
  found = xla_flags.missing_flags(flags, environ.get("XLA_FLAGS", ""))
  booleans = {"true": "True", "false": "False"}  # As jaxlib wants them here.
  return {name: booleans.get(value, value) for name, value in found.items()}


def memory_share(environ: Mapping[str, str] = os.environ) -> float:
  """Of a GPU's memory, what JAX takes when it starts: all that a run has.

  Raises:
    ConfigError: the variable isn't a share.
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
