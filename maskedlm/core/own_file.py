"""Loads an objective or a task of one's own from a Python file.

A name that ends in .py, such as ./my_objective.py, is the file's path, relative
to the current folder. Its code runs: use only files that you trust.
"""

import functools
import importlib.util
import os
import sys
import types
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader

from maskedlm.core.errors import ConfigError, check_name

SUFFIX = ".py"
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

  Args:
    option: the option's name, for errors.
    name: a path that ends in .py, or one of the known names.
    known: the names of maskedlm's own modules.
    has: the names that the file must define.

  Raises:
    ConfigError: the name is neither, or the file can't be loaded.
  """
  if not name.endswith(SUFFIX):
    check_name(option, name, [*known, f"FILE{SUFFIX}"])
    return None
  module = _run(option, name, os.path.realpath(name))
  for each in has:
    if not hasattr(module, each):
      raise ConfigError(
        f"{option}={name!r}: the file has no {each}; docs/design/ shows one."
      )
  return module


@functools.cache  # So that its classes are the same ones in every call.
def _run(option: str, name: str, path: str) -> types.ModuleType:
  if not os.path.isfile(path):
    raise ConfigError(
      f"{option}={name!r}: no such file in {os.getcwd()}; put it there, or run "
      "the command in its folder."
    )
  title = os.path.basename(name).removesuffix(SUFFIX)
  loader = SourceFileLoader(f"own_file.{title}", path)
  spec = importlib.util.spec_from_loader(loader.name, loader)
  assert spec  # It is None only without a loader.
  module = importlib.util.module_from_spec(spec)
  sys.modules[spec.name] = module  # Where dataclasses look for their types.
  try:
    loader.exec_module(module)
  except ConfigError:
    raise
  except Exception as error:
    moved = _MOVED.get(getattr(error, "name", None) or "")
    raise ConfigError(
      f"{option}={name!r} could not be loaded: {type(error).__name__}: "
      f"{' '.join(str(error).split())}"
      + (f"; it is {moved} now" if moved else "")
    ) from error
  return module
