"""Estimates a device's memory for a config's step, from shapes alone."""

import math
from typing import NamedTuple

import jax

from maskedlm.core.task import Batch
from maskedlm.modeling import architecture
from maskedlm.modeling.attention import dispatch
from maskedlm.pretraining.config import PretrainConfig
from maskedlm.pretraining.predictions import mask_rate
from maskedlm.training import sharding
from maskedlm.training.step import TrainState


class Sizes(NamedTuple):
  """A mesh with sizes but no devices."""

  shape: dict[str, int]


def planned_mesh(mesh) -> Sizes:
  """Returns the sizes of config.mesh, for devices that may be elsewhere.

  An axis of -1 gets the devices of this machine that are left, at least 1.

  Raises:
    ConfigError: an axis is 0, or two are -1.
  """
  sizes = [getattr(mesh, axis) for axis in sharding.AXES]
  count = max(math.prod(size for size in sizes if size != -1), 1)
  if -1 in sizes:
    count *= max(jax.device_count() // count, 1)
  return Sizes(sharding.mesh_sizes(mesh, count))


def bytes_per_device(tree, mesh) -> int:
  """Returns the bytes of a tree of shapes on one device, by sharding rules."""
  total = 0
  for path, x in sharding.by_path(tree).items():
    spec = sharding.spec_of(path, x.shape, mesh)
    parts = math.prod(mesh.shape[axis] for axis in spec if axis)
    total += math.prod(x.shape) * x.dtype.itemsize // parts
  return total


def state_bytes(state: TrainState, mesh) -> tuple[int, int]:
  """Returns bytes on one device: (parameters, optimizer state)."""
  fixed = bytes_per_device(state.fixed, mesh)  # A teacher's.
  parameters = bytes_per_device(state.params, mesh) + fixed
  return parameters, bytes_per_device(state, mesh) - parameters


def batch_bytes(batch: Batch, mesh) -> int:
  """Returns the bytes of a batch on one device, of arrays or their shapes."""
  parts = mesh.shape["data"] * mesh.shape["fsdp"]
  return sum(x.size * x.dtype.itemsize for x in batch.values()) // parts


def attention_of(config: PretrainConfig, length: int, **machine) -> str:
  """Returns the implementation of attention in training, for rows of a length.

  If model.attention names one, it is returned unchecked, since the config may
  be for another machine. `machine` has the platform and capability of an
  attention.dispatch.Case.
  """
  cfg = architecture.encoder_config(
    config.model, config.tokenizer.vocab_size, length
  )
  if cfg.attention != "auto":
    return cfg.attention
  case = architecture.attention_case(cfg, length, **machine)
  # An objective with rows of both kinds (gptbert.py).
  case = case._replace(mixed=hasattr(config.objective, "masked_share"))
  return dispatch.choose_implementation("auto", case)


def activation_bytes(
  config: PretrainConfig, rows: int, length: int, **machine
) -> int:
  """Estimates the bytes that the backward pass keeps on one device.

  Per layer and token: 8 vectors of width D and 2 of the MLP's F, and, if
  attention stores them (xla), 2 L probabilities per head; with remat only the
  layer's input (full) or the matmuls' outputs (dots), in which shared keys and
  values are not repeated. LSTMs (bilm) keep 4 vectors of width D and 22 of
  C = F cells, and with remat only the layer's input. The MLM head's logits
  count twice, in float32; for a large vocabulary, those of one block.

  Args:
    rows: rows on the device at a time.
    length: L.
    **machine: platform and capability of an attention.dispatch.Case.
  """
  m, L = config.model, length
  size = 2 if m.dtype == "bfloat16" else 4
  D, F, H = m.width, m.mlp_width, m.num_heads
  if config.objective.name == "bilm":
    kept = {"none": 4 * D + 22 * F, "dots": D, "full": D}
  else:
    scores = 2 * H * L if attention_of(config, L, **machine) == "xla" else 0
    repeated = 2 * D - 2 * D * (m.num_kv_heads or H) // H
    kept = {
      "none": 8 * D + 2 * F + scores,
      "dots": 7 * D + F - repeated,
      "full": D,
    }
  predictions = math.ceil(mask_rate(config.objective) * L)
  layers = m.num_layers * rows * L * kept[m.remat] * size
  words = min(config.tokenizer.vocab_size, m.vocab_block)
  return layers + 2 * 4 * rows * predictions * words
