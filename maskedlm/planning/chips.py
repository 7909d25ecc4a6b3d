"""Chips and the ways in which they are wired: published figures, no jax.

Each figure is a vendor's; where it was read stands beside it. Bandwidths are of
one direction, in bytes/s.
"""

import math
from typing import NamedTuple

from maskedlm.core.errors import ConfigError, did_you_mean

GIB = 2**30


class Chip(NamedTuple):
  """What one chip can do at best."""

  name: str
  flops: float  # Dense bfloat16 FLOP/s.
  hbm_bytes: int
  hbm_bandwidth: float  # Of the chip's own memory.
  link_bandwidth: float  # TPU: of one link. GPU: of all its links in a node.
  node_size: int = 0  # GPU: those that are linked. 0 = a TPU, on a torus.
  network_bandwidth: float = 0.0  # GPU: of its share of the node's network.
  # The compiler's name for how a chip's cores work; "" is its default. v4's two
  # are one device to JAX, but not by libtpu's default ahead of time.
  layout: str = ""


# TPUs: cloud.google.com/tpu/docs/{v4,v5e,v5p,v6e}, tables of specifications.
# There the interconnect is given for a chip: v5e 400 GB/s, both directions of 4
# links; v5p 1200 GB/s, of 6; v6e 3200 Gbit/s where v5e has 1600: twice v5e's.
# v4: 6 links of 50 GB/s (Jouppi et al., arXiv:2304.01433, table 4).
# A100, H100, H200: NVIDIA's data sheets of the SXM boards, dense figures;
# NVLink 600 and 900 GB/s are of both directions. The network is that of DGX
# A100 and DGX H100: one adapter of 200 or 400 Gbit/s for each GPU. Memory is
# what CUDA reports: of A100 and H100 read in gpus.TARGETS' source; of an H200
# 139 of its 141 GiB, as we were told of one.
CHIPS = {
  "v4": Chip("v4", 275e12, 32 * GIB, 1.2e12, 50e9, layout="megacore"),
  "v5e": Chip("v5e", 197e12, 16 * GIB, 819e9, 50e9),
  "v5p": Chip("v5p", 459e12, 95 * GIB, 2_575 * GIB, 100e9),
  "v6e": Chip("v6e", 918e12, 32 * GIB, 1.6e12, 100e9),
  "a100": Chip("a100", 312e12, 85_100_068_864, 2.039e12, 300e9, 8, 25e9),
  "h100": Chip("h100", 989e12, 84_942_979_072, 3.35e12, 450e9, 8, 50e9),
  "h200": Chip("h200", 989e12, 139 * GIB, 4.8e12, 450e9, 8, 50e9),
}

# Slices that Cloud TPU has (the same pages), up to 1024 chips.
_SQUARE = ("2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_CUBE = (
  *("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4"),
  *("4x4x8", "4x8x8", "8x8x8", "8x8x12", "8x8x16"),
)
SLICES = {"v4": _CUBE, "v5e": _SQUARE, "v5p": _CUBE, "v6e": _SQUARE}


class Topology(NamedTuple):
  """So many of a chip, wired so."""

  name: str  # "v5e:16x16", "h100:64".
  chip: Chip
  shape: tuple[int, ...]  # Of the torus; of GPUs, their number.

  @property
  def num_chips(self) -> int:
    return math.prod(self.shape)

  @property
  def is_tpu(self) -> bool:
    return not self.chip.node_size

  @property
  def platform(self) -> str:
    return "tpu" if self.is_tpu else "gpu"

  @property
  def wraps(self) -> tuple[bool, ...]:
    """Of each dimension, whether its ends are linked too.

    On v5e and v6e at 16, on v4 and v5p in slices of whole cubes (4x4x4).
    """
    if len(self.shape) == 2:
      return tuple(size == 16 for size in self.shape)
    cubes = all(size % 4 == 0 for size in self.shape)
    return (cubes,) * len(self.shape)


def parse(name: str) -> Topology:
  """ "v5e:16x16" or "h100:64" -> Topology.

  Raises:
    ConfigError: a chip or a shape that isn't known; it lists those that are.
  """
  kind, _, size = name.partition(":")
  if kind not in CHIPS:
    raise ConfigError(
      f"--topology={name}: unknown chip {kind!r}{did_you_mean(kind, CHIPS)}; "
      f"known: {known()}."
    )
  chip = CHIPS[kind]
  if kind in SLICES:
    if size not in SLICES[kind]:
      raise ConfigError(
        f"--topology={name}: {kind} has no slice {size!r}; known: "
        f"{', '.join(f'{kind}:{shape}' for shape in SLICES[kind])}."
      )
    return Topology(name, chip, tuple(map(int, size.split("x"))))
  node = chip.node_size
  count = int(size) if size.isdecimal() else 0
  if count not in (1, 2, 4) and (count < node or count % node):
    raise ConfigError(
      f"--topology={name}: expected a number of GPUs: 1, 2, 4 or a multiple "
      f"of the {node} of a node, such as {kind}:64."
    )
  return Topology(name, chip, (count,))


def known() -> str:
  """The topologies, in one line."""
  tpus = (f"{kind}:{'|'.join(shapes)}" for kind, shapes in SLICES.items())
  gpus = (f"{kind}:N GPUs" for kind in CHIPS if kind not in SLICES)
  return "; ".join([*tpus, *gpus])
