"""Tensors of a directory -> our parameters, or an error that lists them all.

Which heads a file has, the names that tensors have had over the years, and
what may be left over. Used by hf_import.py.
"""

import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.interop import weights
from maskedlm.interop.errors import InteropError
from maskedlm.interop.names import Architecture, Names
from maskedlm.interop.tensors import DTYPES, Tensors
from maskedlm.interop.weights import Weight
from maskedlm.task import Params

# Today's name -> that of the tensor in the file, or None.
Find = Callable[[str], str | None]
# Buffers that old files hold.
BUFFERS = ("position_ids", "token_type_ids", "inv_freq")
# TensorFlow's names of a norm's arrays, in files until 2019.
OLD = {"weight": "gamma", "bias": "beta"}
# Classes whose heads may all be in one file.
PRETRAINED = ("Model", "ForPreTraining", "ForMaskedLM")


class Read(NamedTuple):
  """What was read of a directory."""

  params: Params
  left: Sequence[str]  # Tensors that were not.


def finder(found: Tensors, architecture: Architecture) -> Find:
  """Finds tensors: with the prefix or without, by old names, or tied ones."""
  tied: dict[str, list[str]] = {}
  for twin, original in architecture.tied.items():
    tied.setdefault(original, []).append(twin)

  def known(name: str) -> Iterator[str]:
    for same in (name, *tied.get(name, ())):
      for each in (same, same.removeprefix(architecture.prefix)):
        yield each
        stem, _, leaf = each.rpartition(".")
        yield f"{stem}.{OLD.get(leaf, leaf)}"

  return lambda name: next((n for n in known(name) if n in found.shapes), None)


def pretrained_heads(
  architecture: Architecture, ending: str, find: Find, *, all_of_them: bool
) -> Names:
  """The modules of the heads that a class has, and of others in the file.

  Args:
    architecture: theirs.
    ending: of the class. Its heads must be in the file; but "Model" may lack
      the pooler.
    find: of the file.
    all_of_them: False for the pooler alone.
  """
  heads: dict[str, str | tuple[str, ...]] = {}
  for each in PRETRAINED if all_of_them else PRETRAINED[:1]:
    there = {
      module.partition("/")[0]
      for module, name in architecture.heads.get(each, {}).items()
      if find(f"{name}.weight") or find(str(name))
    }
    heads |= {
      module: name
      for module, name in architecture.heads.get(each, {}).items()
      if module.partition("/")[0] in there
    }
  if all_of_them and ending != "Model":
    heads |= architecture.heads.get(ending, {})
  return heads


def read(
  plan: Sequence[Weight],
  found: Tensors,
  find: Find,
  architecture: Architecture,
  folder: pathlib.Path,
) -> Read:
  """The parameters that the plan asks for.

  Raises:
    InteropError: tensors that are missing, of another shape or not of floats,
      parts of the encoder that are left over, or tied ones that differ.
  """
  problems, used = [], set()
  for weight in plan:
    for name in (name for names in weight.names for name in names):
      actual = find(name)
      if actual is None:
        problems.append(f"{name} is missing")
        continue
      used.add(actual)
      shape, wanted = found.shapes[actual], weight.part_shape
      if shape != wanted:
        problems.append(f"{actual} is {list(shape)}, expected {list(wanted)}")
      elif found.dtypes[actual] not in DTYPES:
        problems.append(
          f"{actual} is of {found.dtypes[actual]}, expected one of "
          f"{', '.join(DTYPES)}"
        )
  left = []
  for name in sorted(set(found.shapes) - used):
    if name.endswith(BUFFERS):
      continue
    if name in architecture.tied:
      original = find(architecture.tied[name])
      if original and not _same(found, name, original):
        problems.append(
          f"{name} differs from {original}: here they are the same"
        )
    elif _is_encoder(name, architecture):
      problems.append(f"{name} is no part of the encoder in config.json")
    else:
      left.append(name)
  if problems:
    raise InteropError(
      f"{folder}: {len(problems)} tensors don't fit its config.json:\n  "
      + "\n  ".join(problems)
    )
  params = {
    weight.path: weights.join(weight, lambda name: found.read(find(name)))
    for weight in plan
  }
  return Read(weights.unflatten(params), left)


def _same(found: Tensors, a: str, b: str) -> bool:
  return found.shapes[a] == found.shapes[b] and np.array_equal(
    found.read(a), found.read(b)
  )


def _is_encoder(name: str, architecture: Architecture) -> bool:
  stem = name.removeprefix(architecture.prefix)
  return stem.startswith(("embeddings", architecture.layer.partition(".")[0]))
