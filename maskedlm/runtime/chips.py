"""Accelerators: peak FLOP/s, memory and links, as their vendors publish them.

Bandwidths are in bytes/s, in one direction.
"""

from typing import NamedTuple

GIB = 2**30


class Chip(NamedTuple):
  """The peak figures of one chip."""

  name: str
  flops: float  # Dense bfloat16 FLOP/s.
  hbm_bytes: int
  hbm_bandwidth: float  # To the chip's own memory.
  link_bandwidth: float  # TPU: one link. GPU: all its links within a node.
  node_size: int = 0  # GPUs linked to each other; 0 = a TPU, on a torus.
  network_bandwidth: float = 0.0  # GPU: its share of the node's network.
  # libtpu's chip_config_name when compiling ahead of time; "" for its default,
  # which would treat the two cores of a v4 as two devices, unlike JAX.
  layout: str = ""
  # JAX's devices on a chip of the vendor's. Where they are two, the figures
  # above are of each, a half of the chip.
  devices: int = 1


# TPUs: cloud.google.com/tpu/docs/{v4,v5e,v5p,v6e,tpu7x}, tables of
# specifications, which give the interconnect per chip: v5e 400 GB/s, both
# directions of 4 links; v5p and tpu7x 1200 GB/s, of 6; v6e 3200 Gbit/s, twice
# v5e's 1600. A chip of tpu7x has 2,307 TFLOP/s, 192 GiB and 7,380 GB/s.
# v4: 6 links of 50 GB/s (Jouppi et al., arXiv:2304.01433, table 4).
# A100, H100, H200: NVIDIA's data sheets of the SXM boards, dense figures;
# NVLink's 600 and 900 GB/s count both directions. The network is that of DGX
# A100 and DGX H100: one adapter of 200 or 400 Gbit/s for each GPU. Memory is
# what CUDA reports: for A100 and H100 from the source of gpus.TARGETS; for the
# H200 139 of its 141 GiB, as one machine reported.
CHIPS = {
  "v4": Chip("v4", 275e12, 32 * GIB, 1.2e12, 50e9, layout="megacore"),
  "v5e": Chip("v5e", 197e12, 16 * GIB, 819e9, 50e9),
  "v5p": Chip("v5p", 459e12, 95 * GIB, 2_575 * GIB, 100e9),
  "v6e": Chip("v6e", 918e12, 32 * GIB, 1.6e12, 100e9),
  "tpu7x": Chip("tpu7x", 1153.5e12, 96 * GIB, 3.69e12, 100e9, devices=2),
  "a100": Chip("a100", 312e12, 85_100_068_864, 2.039e12, 300e9, 8, 25e9),
  "h100": Chip("h100", 989e12, 84_942_979_072, 3.35e12, 450e9, 8, 50e9),
  "h200": Chip("h200", 989e12, 139 * GIB, 4.8e12, 450e9, 8, 50e9),
}

# Prefix of JAX's device_kind -> dense bfloat16 FLOP/s.
PEAK_FLOPS = {
  "TPU v4": CHIPS["v4"].flops,
  "TPU v5 lite": CHIPS["v5e"].flops,
  "TPU v5e": CHIPS["v5e"].flops,
  "TPU v5": CHIPS["v5p"].flops,
  "TPU v5p": CHIPS["v5p"].flops,
  "TPU v6 lite": CHIPS["v6e"].flops,
  "TPU v6e": CHIPS["v6e"].flops,
  "TPU7x": CHIPS["tpu7x"].flops,
  "NVIDIA A100": CHIPS["a100"].flops,
  "NVIDIA H100": CHIPS["h100"].flops,
  "NVIDIA H100 PCIe": 756e12,
  "NVIDIA H100 NVL": 835e12,
  "NVIDIA H200": CHIPS["h200"].flops,
  "NVIDIA H200 NVL": 835e12,
}


def peak_flops(device_kind: str) -> float | None:
  """Returns the peak bfloat16 FLOP/s of a device; None if it is unknown."""
  # The longest name first: "TPU v5 lite" is not a "TPU v5".
  for name in sorted(PEAK_FLOPS, key=len, reverse=True):
    if device_kind.startswith(name):
      return PEAK_FLOPS[name]
  return None
