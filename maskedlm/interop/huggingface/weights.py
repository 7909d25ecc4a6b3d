"""Matches parameters and tensors, and converts between their layouts.

A dense kernel is [inputs, outputs] here and [outputs, inputs] in transformers.
Here, query, key and value are one array, layers are stacked, and the vocabulary
is padded; in transformers, RoBERTa's position table has unused rows.
`split_weight` and `join_weight` only move numbers and are exact inverses.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from maskedlm.core.errors import InteropError
from maskedlm.interop.huggingface.parameter_names import Architecture, Names
from maskedlm.modeling.architecture import EncoderConfig

LEAVES = {"kernel": "weight", "scale": "weight", "embedding": "weight"}
TOKENS = "encoder/embeddings/token/embedding"
OUTPUTS = "mlm_head/embedding"  # The table of a head that is not tied.
TYPES = "encoder/embeddings/token_type/embedding"
POSITIONS = "encoder/embeddings/position/embedding"


class Weight(NamedTuple):
  """One of our arrays and the tensors that it corresponds to."""

  path: str  # Such as "encoder/layers/mlp/up/kernel".
  shape: tuple[int, ...]  # Ours; the first axis of stacked ones is the layer.
  # For each layer (or once), the tensors that are concatenated to ours; () if
  # there is none, as it is unused (ModernBERT's first norm).
  names: tuple[tuple[str, ...], ...]
  stacked: bool  # Whether it has all layers.
  rows: int = 0  # Vocabulary rows in the tensor; 0 = all of ours.
  skipped: int = 0  # Rows of the tensor before ours.

  @property
  def layer_shape(self) -> tuple[int, ...]:
    """The shape of one layer of our array."""
    return self.shape[1:] if self.stacked else self.shape

  @property
  def part_shape(self) -> tuple[int, ...]:
    """The shape of each tensor."""
    parts = max(map(len, self.names))
    if self.path.endswith("/kernel"):
      inputs, outputs = _sides(self)
      return outputs // parts, inputs
    if self.path.endswith("/embedding"):
      rows, width = self.shape
      return (self.rows or rows) + self.skipped, width
    return ((self.rows or math.prod(self.layer_shape)) // parts,)


def plan_weights(
  architecture: Architecture,
  cfg: EncoderConfig,
  shapes: Mapping[str, tuple[int, ...]],
  *,
  heads: Names,
  bare: bool,
  pad: int,
) -> list[Weight]:
  """Returns a Weight for each of our arrays.

  Args:
    architecture: the architecture in transformers.
    shapes: path -> shape of each array to read or write.
    heads: names of the modules outside the encoder.
    bare: True for a model without heads, whose names have no prefix.
    pad: the id of [PAD], which RoBERTa's positions follow.

  Raises:
    InteropError: arrays have no name in transformers; the message lists all.
  """
  prefix = "" if bare else architecture.prefix
  plan, unnamed = [], []
  for path, shape in shapes.items():
    module, _, leaf = path.rpartition("/")
    stacked = path.startswith("encoder/layers/")
    if stacked:
      theirs = architecture.layers.get(module.removeprefix("encoder/layers/"))
      before = prefix + architecture.layer
    elif path.startswith("encoder/"):
      theirs = architecture.encoder.get(module.removeprefix("encoder/"))
      before = prefix
    else:
      theirs = heads.get(path) or heads.get(module)
      if path == OUTPUTS and not theirs:  # Of a head that is usually tied.
        theirs = next(iter(architecture.tied), None)
      before = ""
    if theirs is None:
      unnamed.append(path)
      continue
    theirs = (theirs,) if isinstance(theirs, str) else theirs
    end = "" if path in (*heads, OUTPUTS) else f".{LEAVES.get(leaf, leaf)}"
    if bare and path.startswith("pooler/"):
      theirs = tuple(name.removeprefix(architecture.prefix) for name in theirs)
    weight = Weight(
      path=path,
      shape=tuple(shape),
      names=tuple(
        tuple(f"{before}{name}{end}".replace("{n}", str(n)) for name in theirs)
        for n in range(shape[0] if stacked else 1)
      ),
      stacked=stacked,
      rows=cfg.vocab_size if path in (TOKENS, OUTPUTS, "mlm_head/bias") else 0,
      skipped=(
        pad + 1 if path == POSITIONS and architecture.positions_after_pad else 0
      ),
    )
    if cfg.skip_first_norm and "/attention_norm/" in path:
      weight = weight._replace(names=((), *weight.names[1:]))
    plan.append(weight)
  if unnamed:
    raise InteropError(
      f"{architecture.model_type} has no place for {', '.join(unnamed)}; "
      "export another --part or --architecture."
    )
  return plan


def split_weight(
  weight: Weight, ours: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
  """Yields (name, tensor) of each part of our array."""
  layers = ours if weight.stacked else ours[None]
  for layer, names in zip(layers, weight.names, strict=True):
    if not names:
      continue
    theirs = layer[: weight.rows or None]
    if weight.path.endswith("/kernel"):
      theirs = layer.reshape(_sides(weight)).T
    elif weight.path.endswith("/embedding"):
      unused = np.zeros((weight.skipped, theirs.shape[1]), theirs.dtype)
      theirs = np.concatenate([unused, theirs])
    else:
      theirs = theirs.reshape(-1)
    parts = np.split(theirs, len(names))
    for name, part in zip(names, parts, strict=True):
      yield name, np.ascontiguousarray(part)


def join_weight(
  weight: Weight, read: Callable[[str], np.ndarray]
) -> np.ndarray:
  """Returns our array in float32, from tensors that `read` returns by name.

  Padding rows of the vocabulary are 0; the unused norm is 1.
  """
  shape = weight.layer_shape
  layers = []
  for names in weight.names:
    if not names:
      layers.append(np.ones(shape, np.float32))
      continue
    theirs = np.concatenate([read(n) for n in names])
    if weight.path.endswith("/kernel"):
      ours = np.ascontiguousarray(theirs.T.reshape(shape))
    else:
      ours = np.zeros(shape, np.float32)
      theirs = theirs[weight.skipped :].reshape(-1)
      ours.reshape(-1)[: theirs.size] = theirs
    layers.append(ours)
  return np.stack(layers) if weight.stacked else layers[0]


def _sides(weight: Weight) -> tuple[int, int]:
  """Returns (inputs, outputs) of a kernel; attention's last has one output."""
  shape = weight.layer_shape
  is_out = weight.path.endswith(("/out/kernel", "/group_out/kernel"))
  split_at = len(shape) - 1 if is_out else 1
  return math.prod(shape[:split_at]), math.prod(shape[split_at:])
