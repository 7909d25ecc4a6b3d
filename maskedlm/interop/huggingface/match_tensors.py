"""Matches tensors of a directory to parameters; an error lists all misfits.

Tensors are also found under older names, the heads in a file are detected, and
only tensors outside the encoder may be left over.
"""

import itertools
import pathlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from flax import traverse_util

from maskedlm.core.counts import first_names
from maskedlm.core.errors import InteropError
from maskedlm.core.task import Params
from maskedlm.interop.huggingface import weights
from maskedlm.interop.huggingface.parameter_names import Architecture, Names
from maskedlm.interop.huggingface.tensors import DTYPES, Tensors
from maskedlm.interop.huggingface.weights import Weight

# Current name -> name of the tensor in the file, or None.
Find = Callable[[str], str | None]
# Suffixes of buffers in old files, which are ignored.
BUFFERS = ("position_ids", "token_type_ids")
# Suffixes of those of rotary encoders, which are made anew, or unused.
ROTARY = ("inv_freq", "position_embeddings.weight")
# TensorFlow's names for a norm's arrays, in files until 2019.
TENSORFLOW_NAMES = {"weight": "gamma", "bias": "beta"}
# Suffixes of classes for pretraining, the one with most heads first.
PRETRAINED = (
  *("ForPreTraining", "ForMaskedLM", "ForNextSentencePrediction"),
  "ForCausalLM",
)
MAX_LINES = 20  # The most problems that an error lists.


def without_prefix(
  tensors: Tensors,
  architecture: Architecture,
  folder: pathlib.Path,
  log: Callable[[str], None],
) -> Tensors:
  """Returns the tensors without a prefix that a wrapper put before the names.

  Examples are "module." (DataParallel), "_orig_mod." (torch.compile), "model."
  (Lightning), "0.auto_model." (sentence-transformers), or "bert." in a RoBERTa.
  A prefix that only the encoder's tensors have is removed from these.

  Raises:
    InteropError: there is no encoder of this architecture, or several.
  """
  names = list(tensors.shapes)
  table = f"{architecture.encoder['embeddings/token']}.weight"
  befores = [n.removesuffix(table) for n in names if n.endswith(table)]
  if {"", architecture.prefix} & {*befores}:
    return tensors
  if len(befores) != 1:
    several = f"{len(befores)} encoders ({', '.join(befores)})"
    raise InteropError(
      f"{folder} has {several if befores else 'no tensor ' + table}; its "
      f"{len(names)} tensors are {first_names(names)}; expected one encoder, "
      f"with the names of transformers' {architecture.class_prefix}Model."
    )
  prefix = befores[0]
  # The "model." of "0.auto_model." is not ModernBERT's own prefix.
  if f".{prefix}".endswith(f".{architecture.prefix}"):
    prefix = prefix.removesuffix(architecture.prefix)
  dotted = itertools.accumulate(f"{x}." for x in prefix.split(".")[:-1])
  in_all = [x for x in dotted if all(name.startswith(x) for name in names)]
  shared = in_all[-1] if in_all else ""
  rest = prefix.removeprefix(shared)
  old = {n.removeprefix(shared).removeprefix(rest): n for n in names}
  if len(old) < len(names):
    raise InteropError(
      f"{folder}: names of tensors are not distinct without the prefix "
      f"{prefix!r}: rename them as in transformers."
    )
  log(f"{folder}: the names of its tensors begin with {prefix!r}, left out")
  return Tensors(
    shapes={name: tensors.shapes[old_name] for name, old_name in old.items()},
    dtypes={name: tensors.dtypes[old_name] for name, old_name in old.items()},
    read=lambda name: tensors.read(old[name]),
  )


def make_finder(tensors: Tensors, architecture: Architecture) -> Find:
  """Returns a function that finds tensors by current, old or tied names.

  In the file, names may lack the architecture's prefix.
  """
  tied: dict[str, list[str]] = {}
  for twin, original in architecture.tied.items():
    tied.setdefault(original, []).append(twin)

  def spellings(name: str) -> Iterator[str]:
    for alias in (name, *tied.get(name, ())):
      for spelling in (alias, alias.removeprefix(architecture.prefix)):
        yield spelling
        stem, _, leaf = spelling.rpartition(".")
        yield f"{stem}.{TENSORFLOW_NAMES.get(leaf, leaf)}"

  return lambda name: next(
    (n for n in spellings(name) if n in tensors.shapes), None
  )


def pretrained_heads(
  architecture: Architecture, find: Find, *, all_of_them: bool
) -> Names:
  """Returns the modules of the pretraining heads in a file, with their names.

  `find` is from make_finder; without all_of_them, only the pooler counts.
  """
  heads: dict[str, str | tuple[str, ...]] = {}
  for ending in ("Model", *(PRETRAINED if all_of_them else ())):
    modules = architecture.heads.get(ending, {})
    present = {
      module.partition("/")[0]
      for module, name in modules.items()
      if find(f"{name}.weight") or find(str(name))
    }
    heads |= {
      m: n for m, n in modules.items() if m.partition("/")[0] in present
    }
  return heads


def read_params(
  plan: Sequence[Weight],
  tensors: Tensors,
  find: Find,
  architecture: Architecture,
  folder: pathlib.Path,
) -> tuple[Params, Sequence[str]]:
  """Returns the parameters that the plan lists, and the tensors not read.

  Raises:
    InteropError: tensors are missing, have another shape, are not floats or not
      finite; parts of the encoder are left over; or tied tensors differ.
  """
  misfits = {w.path: list(_misfits(w, tensors, find)) for w in plan}
  names = (name for w in plan for names in w.names for name in names)
  used = set(map(find, names))
  has_mlm = any(path.startswith("mlm_head/") for path in misfits)
  is_rotary = "embeddings/position" not in architecture.encoder
  strange, unread = [], []
  for name in sorted(set(tensors.shapes) - used):
    if name.endswith(BUFFERS):
      continue
    if name.endswith(ROTARY) and is_rotary:
      unread.append(name)
    elif name in architecture.tied and has_mlm:
      original = find(architecture.tied[name])
      if original and not _are_equal(tensors, name, original):
        misfits[name] = [f"{name} differs from {original}: maskedlm ties them"]
    elif _is_encoder(name, architecture):
      strange.append(f"{name} is not in the encoder of config.json")
    else:
      unread.append(name)
  problems = [*itertools.chain(*misfits.values()), *strange]
  if problems:
    in_encoder = strange or any(
      misfits[w.path] for w in plan if w.path.startswith("encoder/")
    )
    remedy = "import the encoder alone with --part encoder"
    raise InteropError(
      f"{folder}: {len(problems)} tensors don't fit its config.json"
      f"{'' if in_encoder else f'; {remedy}'}:\n  "
      + "\n  ".join(problems[:MAX_LINES])
      + f"\n  and {len(problems) - MAX_LINES} more"
      * (len(problems) > MAX_LINES)
    )

  def tensor(name: str) -> np.ndarray:
    actual = find(name)
    assert actual is not None  # Or there were problems.
    with np.errstate(over="ignore"):
      x = np.asarray(tensors.read(actual), np.float32)
    if not np.isfinite(x).all():
      raise InteropError(
        f"{folder}: {actual} has values that are not finite in float32; "
        "fetch the file again."
      )
    return x

  params = {weight.path: weights.join_weight(weight, tensor) for weight in plan}
  return traverse_util.unflatten_dict(params, sep="/"), unread


def _misfits(weight: Weight, tensors: Tensors, find: Find) -> Iterator[str]:
  """Yields a line for each problem with a weight's tensors."""
  for name in (name for names in weight.names for name in names):
    actual = find(name)
    if actual is None:
      yield f"{name} is missing"
      continue
    shape, wanted = tensors.shapes[actual], weight.part_shape
    if shape != wanted:
      yield f"{actual} is {list(shape)}, expected {list(wanted)}"
    elif tensors.dtypes[actual] not in DTYPES:
      yield (
        f"{actual} is of {tensors.dtypes[actual]}, expected one of "
        f"{', '.join(DTYPES)}"
      )


def _are_equal(tensors: Tensors, a: str, b: str) -> bool:
  return tensors.shapes[a] == tensors.shapes[b] and np.array_equal(
    tensors.read(a), tensors.read(b)
  )


def _is_encoder(name: str, architecture: Architecture) -> bool:
  stem = name.removeprefix(architecture.prefix)
  return stem.startswith(("embeddings", architecture.layer.partition(".")[0]))
