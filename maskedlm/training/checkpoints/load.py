"""Loads checkpoints for use: parameters, architecture, tokenizer.

Fine-tuning, prediction, fill-mask, embeddings and exports start here.
"""

import hashlib
import pathlib
from collections.abc import Collection
from typing import NamedTuple

import jax
import numpy as np
from flax import traverse_util

from maskedlm.core.errors import CheckpointError, ConfigError
from maskedlm.core.task import Params
from maskedlm.data.tokenizers.tokenizer import Tokenizer, open_tokenizer
from maskedlm.modeling.architecture import EncoderConfig, restored
from maskedlm.runtime import buckets, console, hub_names
from maskedlm.training.checkpoints import files, manifest
from maskedlm.training.checkpoints.arrays import read_arrays


class Described(NamedTuple):
  """The model that a checkpoint holds, without its parameters."""

  cfg: EncoderConfig
  tokenizer: Tokenizer
  meta: dict  # As it was saved, with "step", "task", "heldout", ...


class LoadedCheckpoint(NamedTuple):
  """The model that a checkpoint holds."""

  params: Params  # Numpy arrays.
  cfg: EncoderConfig
  tokenizer: Tokenizer
  meta: dict


def describe_checkpoint(path: str | pathlib.Path) -> Described:
  """Returns the Described of a workdir's newest checkpoint, or of a checkpoint.

  Only small files are read, and JAX's devices are not initialised, so hosts may
  be connected afterwards.
  """
  path = _resolve_existing(path)
  record = files.load_record(path)
  names = [name.split("/") for name in record["arrays"]]
  subtrees = {rest[0] for first, *rest in names if first == "params"}
  return _describe(path, subtrees, manifest.meta(record))


def param_shapes(path: str | pathlib.Path) -> Params:
  """Returns jax.ShapeDtypeStructs of what open_checkpoint would load.

  Only a small file is read.
  """
  arrays = files.load_record(_resolve_existing(path))["arrays"]
  shapes = {}
  for name, described in arrays.items():  # "float32[5,13]"
    dtype, _, sizes = described.removesuffix("]").partition("[")
    shape = tuple(map(int, filter(None, sizes.split(","))))
    shapes[name] = jax.ShapeDtypeStruct(shape, dtype)
  return traverse_util.unflatten_dict(shapes, sep="/").get("params", {})


def open_checkpoint(
  path: str | pathlib.Path, *, step: int | str | None = None
) -> LoadedCheckpoint:
  """Loads the newest checkpoint of a workdir, or the one of a given step.

  Args:
    path: WORKDIR, WORKDIR/checkpoints or the folder of a step.
    step: a number or "best"; None for the newest good one.

  Raises:
    CheckpointError: there is no checkpoint, or it is damaged.
    ConfigError: there is no such folder, it has no encoder, or its tokenizer
      doesn't fit.
  """
  path = _resolve_existing(path)
  params, meta = load_params(path, step=step)
  return LoadedCheckpoint(params, *_describe(path, params, meta))


def open_ema(path: str | pathlib.Path) -> LoadedCheckpoint:
  """Loads a checkpoint of pretraining with the moving average as its params.

  Raises:
    CheckpointError: there is no checkpoint, it is damaged, or has no average.
    ConfigError: as open_checkpoint.
  """
  path = _resolve_existing(path)
  params, meta = files.load_step(
    path, None, _load_ema, items=("state/", "meta/"), log=console.warn
  )
  return LoadedCheckpoint(params, *_describe(path, params, meta))


def _load_ema(path: buckets.Path):
  """Loads (the moving average, meta) from the folder of a step."""
  record = manifest.read_record(path)
  names = [name for name in record["arrays"] if name.startswith("ema/")]
  if not names:
    raise CheckpointError(
      f"{path} has no moving average: it was trained with train.ema_decay=0."
    )
  average = read_arrays(path / "state", names)["ema"]
  return average, manifest.meta(record)


def load_params(
  path: str | pathlib.Path,
  *,
  step: int | str | None = None,
  log: files.Log = console.warn,
) -> tuple[dict, dict]:
  """Loads only the parameters, as numpy; the run may still be in progress.

  Args:
    path: WORKDIR, WORKDIR/checkpoints or the folder of a step.
    step: a number or "best"; None for the newest good one.
    log: receives a line for each problem that is passed over.

  Returns:
    (params, meta): nested dicts of numpy arrays, and the meta as it was saved,
    with "step" and "metric". Nothing else is read or verified.

  Raises:
    CheckpointError: there is no such step, or it is damaged.
    ConfigError, StorageError: the folder can't be read.
  """
  return files.load_step(
    _resolve(path), step, _load_params, items=("params/", "meta/"), log=log
  )


def _load_params(path: buckets.Path):
  """Loads (params, meta) from the folder of a step."""
  record = manifest.read_record(path)
  names = [
    name.removeprefix("params/")
    for name in record["arrays"]
    if name.startswith("params/")
  ]
  params = read_arrays(path / "params", names)
  if "lm_head" in params:  # Of causal models, until objectives shared a head.
    params["mlm_head"] = params.pop("lm_head")
  return params, manifest.meta(record)


def _resolve(path: str | pathlib.Path) -> buckets.Path:
  """Returns the path of a folder, an address or a model of the Hub."""
  if hub_names.is_name(path):
    return hub_names.workdir(path)
  return buckets.origin(path)


def _resolve_existing(path: str | pathlib.Path) -> buckets.Path:
  """Returns the path; raises ConfigError if there is no such folder."""
  path = _resolve(path)
  if not path.exists():
    raise ConfigError(
      f"{path}: no such folder; expected the workdir of a run, or one of its "
      "checkpoints."
    )
  return path


def _describe(
  path: buckets.Path, subtrees: Collection[str], meta: dict
) -> Described:
  """Returns the Described of the checkpoint at a path, or in that workdir.

  Raises:
    ConfigError: it has no encoder, or its tokenizer doesn't fit.
  """
  if "encoder" not in subtrees or "encoder" not in meta.get("task", {}):
    raise ConfigError(
      f"{path} has no encoder (it has {', '.join(sorted(subtrees))}): expected "
      "a workdir of pretraining, fine-tuning or an import."
    )
  tokenizer = open_tokenizer(tokenizer_dir(path))
  cfg = restored(meta["task"]["encoder"])
  if tokenizer.vocab_size != cfg.vocab_size:
    raise ConfigError(
      f"the tokenizer of {path} has {tokenizer.vocab_size} tokens, its encoder "
      f"{cfg.vocab_size}: it belongs to another run."
    )
  return Described(cfg, tokenizer, meta)


def open_best(path: str | pathlib.Path) -> LoadedCheckpoint:
  """Loads a fine-tuned workdir's best checkpoint; the newest one of others."""
  folder = _resolve(path) / "checkpoints"
  for step in files.ranked_steps(folder)[:1]:
    record = manifest.read_record(folder / str(step))
    if "kind" in record["meta"].get("task", {}):
      return open_checkpoint(path, step="best")
  return open_checkpoint(path)


def facts(opened: LoadedCheckpoint) -> dict[str, str]:
  """Returns hashes that must be equal on all hosts (multihost.py)."""
  return {
    "the weights of init_from": fingerprint(opened.params),
    "the tokenizer of init_from": opened.tokenizer.sha256,
  }


def fingerprint(params: Params) -> str:
  """Returns the SHA-256 of numpy arrays and their names."""
  digest = hashlib.sha256()
  for path, x in jax.tree_util.tree_leaves_with_path(params):
    digest.update(jax.tree_util.keystr(path).encode())
    digest.update(np.ascontiguousarray(x).view(np.uint8).data)
  return digest.hexdigest()


def tokenizer_dir(path: str | pathlib.Path) -> buckets.Path:
  """Returns the folder tokenizer/ of the workdir that is or contains `path`.

  Raises:
    ConfigError: there is none.
  """
  path = _resolve(path)
  for folder in (path, *path.parents[:2]):
    if (folder / "tokenizer").is_dir():
      return folder / "tokenizer"
  raise ConfigError(f"no tokenizer/ in {path} or above it: is it a workdir?")
