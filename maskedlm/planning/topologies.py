"""Defines topologies: how many chips of a kind are linked, in which shape.

The chips' figures are in runtime/chips.py. This module needs no jax.
"""

import math
from typing import NamedTuple

from maskedlm.core.errors import ConfigError, did_you_mean
from maskedlm.runtime.chips import CHIPS, Chip

# Slices that Cloud TPU offers (cloud.google.com/tpu/docs), up to 1024 chips.
_SQUARE = ("2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_CUBE = (
  *("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4"),
  *("4x4x8", "4x8x8", "8x8x8", "8x8x12", "8x8x16"),
)
SLICES = {
  "v4": _CUBE,
  "v5e": _SQUARE,
  "v5p": _CUBE,
  "v6e": _SQUARE,
  "tpu7x": tuple(shape for shape in _CUBE if shape != "8x8x12"),
}


class Topology(NamedTuple):
  """A number of chips of one kind, and how they are linked."""

  name: str  # "v5e:16x16", "h100:64".
  chip: Chip
  shape: tuple[int, ...]  # TPUs: sizes of the torus. GPUs: their number.

  @property
  def num_chips(self) -> int:
    """JAX's devices; a chip of TPU7x counts as two."""
    return math.prod(self.shape) * self.chip.devices

  @property
  def is_tpu(self) -> bool:
    return not self.chip.node_size

  @property
  def platform(self) -> str:
    return "tpu" if self.is_tpu else "gpu"

  @property
  def wraps(self) -> tuple[bool, ...]:
    """Whether the two ends of each dimension are linked.

    They are on v5e and v6e at size 16, and on the others in slices of whole
    cubes (4x4x4).
    """
    if len(self.shape) == 2:
      return tuple(size == 16 for size in self.shape)
    cubes = all(size % 4 == 0 for size in self.shape)
    return (cubes,) * len(self.shape)


def parse_topology(name: str) -> Topology:
  """Parses a topology such as "v5e:16x16" or "h100:64".

  Raises:
    ConfigError: the chip or the shape is unknown.
  """
  kind, _, size = name.partition(":")
  if kind not in CHIPS:
    raise ConfigError(
      f"--topology={name}: unknown chip {kind!r}{did_you_mean(kind, CHIPS)}; "
      f"known: {known_topologies()}."
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


def known_topologies() -> str:
  """Returns the known topologies, in one line."""
  tpus = (f"{kind}:{'|'.join(shapes)}" for kind, shapes in SLICES.items())
  gpus = (f"{kind}:N GPUs" for kind in CHIPS if kind not in SLICES)
  return "; ".join([*tpus, *gpus])
