"""Loads an objective, a task, a layer or an update rule from one's own file.

A name that ends in .py, such as ./my_objective.py, is the file's path, relative
to the current folder. Its code runs: use only files that you trust. A run keeps
the name with a hash of the file, ./my_objective.py#0123456789ab: what it has
trained, or trains on, is then computed by the same code, or refused.
"""

import functools
import hashlib
import os
import re
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskedlm.core.errors import ConfigError, check_name

# The options that can name such a file.
OPTIONS = ("objective.name", "task.kind", "model.mlp", "optimizer.rule")
SUFFIX = ".py"
FOLDER = "code"  # Of a run: copies of its files, code/HASH/NAME.py.
_NAME = re.compile(r".*\.py(#[0-9a-f]{12})?", re.DOTALL)
# What such files imported from earlier versions, and where it is now.
_COMMON = "maskedlm.finetune.common"
_MOVED = {
  "maskedlm.objectives": "maskedlm.pretraining",
  f"{_COMMON}.confusion": f"{_COMMON}.label_metrics",
  f"{_COMMON}.labelled_or_null": "maskedlm.modeling.task_heads.span_labels",
  f"{_COMMON}.row_head": f"{_COMMON}.head",
  f"{_COMMON}.span_vectors": "maskedlm.modeling.task_heads.span_vectors",
  f"{_COMMON}.tag_head": "maskedlm.modeling.task_heads.label_heads",
  "maskedlm.finetune.tagging.crf": "maskedlm.modeling.task_heads.crf",
}


def load(option: str, name: str, known: list[str], *, has: Sequence[str]):
  """Returns the module in the file `name`; None if `name` is a known one.

  `name`, the value of an option, is a path that ends in .py, perhaps with a
  hash, or a known name, of maskedlm's modules. The file must define `has`.

  Raises:
    ConfigError: the name is neither, or the file can't be loaded.
  """
  if not is_own(name):
    check_name(option, name, [*known, f"FILE{SUFFIX}"])
    return None
  path, code = read(option, name)
  try:
    module = _run(path, code)
  except ConfigError:
    raise
  except Exception as error:
    moved = _MOVED.get(getattr(error, "name", None) or "")
    raise ConfigError(
      f"{option}={name!r} could not be loaded: {type(error).__name__}: "
      f"{' '.join(str(error).split())}"
      + (f"; it is {moved} now" if moved else "")
    ) from error
  for symbol in has:
    if not hasattr(module, symbol):
      raise ConfigError(
        f"{option}={name!r}: the file has no {symbol}; docs/design/ shows one."
      )
  return module


@functools.cache  # So that its classes are the same ones in every call.
def _run(path: str, code: bytes) -> types.ModuleType:
  title = os.path.basename(path).removesuffix(SUFFIX)
  module = types.ModuleType(f"own_file.{title}")
  module.__file__ = path
  sys.modules[module.__name__] = module  # Where dataclasses look for types.
  exec(compile(code, path, "exec"), module.__dict__)
  return module


def is_own(name: object) -> bool:
  """Returns whether an option's value names a file of one's own."""
  return isinstance(name, str) and _NAME.fullmatch(name) is not None


def pins(config: Any) -> dict[str, str]:
  """Returns {option: its name with the hash of the file} of a config."""
  return {
    option: f"{_split(name)[0]}#{_hash(read(option, name)[1])}"
    for option, name in _names(config)
  }


def copies(config: Any, encoder: Mapping[str, Any]) -> dict[str, bytes]:
  """Returns the files that a run keeps: path in its workdir -> content.

  The names in the config have hashes. `encoder` are the fields of its
  architecture, of init_from, perhaps.
  """
  files = {}
  for option, name in [*_names(config), *_names({"model": encoder})]:
    _, code = read(option, name)
    base = os.path.basename(_split(name)[0])
    files[f"{FOLDER}/{_hash(code)}/{base}"] = code
  return files


def _names(config: Any) -> Iterator[tuple[str, Any]]:
  """Yields (option, name) of the files that a config names."""
  for option in OPTIONS:
    section, _, key = option.partition(".")
    name = config[section].get(key) if section in config else ""
    if is_own(name):
      yield option, name


def read(option: str, name: str) -> tuple[str, bytes]:
  """Returns the absolute path of a file and its content.

  Raises:
    ConfigError: it isn't there, or has another hash than the name.
  """
  source, wanted = _split(name)
  base = os.path.basename(source)
  problem = f"no such file in {os.getcwd()}"
  for path in (source, base) if wanted else (source,):
    if not os.path.isfile(path):
      continue
    with open(path, "rb") as file:
      code = file.read()
    if not wanted or _hash(code) == wanted:
      return os.path.realpath(path), code
    problem = "it was edited after the run began"
  remedy = (
    f"the run keeps a copy, {FOLDER}/{wanted}/{base} in its workdir: read it, "
    f"and copy it to {os.getcwd()}, or start another run"
    if wanted
    else "put it there, or run the command in its folder"
  )
  raise ConfigError(f"{option}={source!r}: {problem}; {remedy}.")


def is_same(a: str, b: str) -> bool:
  """Returns whether two names are of one file: by hashes if both have one."""
  (path_a, hash_a), (path_b, hash_b) = _split(a), _split(b)
  if hash_a and hash_b:
    return hash_a == hash_b
  return os.path.realpath(path_a) == os.path.realpath(path_b)


def _split(name: str) -> tuple[str, str]:
  """Returns (path, hash) of a name; "" if it has no hash."""
  path, _, hashed = name.partition(f"{SUFFIX}#")
  return (path + SUFFIX, hashed) if hashed else (name, "")


def _hash(code: bytes) -> str:
  return hashlib.sha256(code).hexdigest()[:12]
