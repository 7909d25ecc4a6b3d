"""Reads the labelled files that a source names, in the layout they have.

A test file may have another layout than the training file. `evaluate` and
`predict` therefore accept the options that are overridable
(contract.task_option) as `finetune` does, so that the remedy in an error
message works there, too.
"""

import glob
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from ml_collections import ConfigDict

from maskedlm.config import overrides
from maskedlm.core import options as option_checks
from maskedlm.core import removed
from maskedlm.core.errors import ConfigError, DataError, did_you_mean
from maskedlm.data.labelled import tfds_rows
from maskedlm.finetune.config import data_dir, make_task
from maskedlm.finetune.contract import Example, FinetuneTask, options_that

_OVERRIDE = "--config.task."


def read_examples(task: FinetuneTask, source: str) -> list[Example]:
  """Returns the examples of all files of a source, in their order.

  Raises:
    DataError: see `find_files` and task.read_examples; two examples have the
      same id.
  """
  examples = [
    x for path in find_files(source) for x in task.read_examples(path)
  ]
  seen: dict[str, str] = {}  # id -> where it is.
  for example in examples:
    if not hasattr(example, "id"):
      break
    if example.id in seen:
      raise DataError(
        f"{example.where}: the id {example.id!r} occurs twice, first in "
        f"{seen[example.id]}; expected each once, as it names a prediction: "
        "give the rows ids of their own."
      )
    seen[example.id] = example.where
  return examples


def find_files(source: str) -> list[str]:
  """Returns the files that a source names, each once.

  Args:
    source: a file, a glob or several of them separated by commas. If a file
      has exactly this name, it is the only one; "tfds:..." is returned as is.

  Raises:
    DataError: a glob matches nothing, no name is given, or a file in data_dir()
      is missing. task.read_examples reports other missing files.
  """
  if tfds_rows.is_source(source) or pathlib.Path(source).exists():
    return [source]
  paths = []
  for name in filter(None, map(str.strip, source.split(","))):
    is_glob = glob.has_magic(name) and not pathlib.Path(name).exists()
    matches = sorted(glob.glob(name, recursive=True)) if is_glob else [name]
    is_there = all(pathlib.Path(x).exists() for x in matches or [name])
    if name.startswith(f"{data_dir()}/") and not is_there:
      raise DataError(
        f"{name}: no such file. Set MASKEDLM_DATA to the folder of such data "
        "(docs/guides/finetune/overview.md), or --config.data.train and .dev "
        "to your files."
      )
    if not matches:
      raise DataError(f"{name}: no file matches; expected labelled files.")
    paths += matches
  if not paths:
    raise DataError(f"{source!r} names no file; expected labelled files.")
  return list(dict.fromkeys(paths))


def with_overrides(
  kind: str, values: Mapping[str, Any], tokens: Sequence[str]
) -> FinetuneTask:
  """Returns the task `kind` with a checkpoint's options, some of them changed.

  The changes are `tokens`, --config.task.NAME=VALUE.

  Raises:
    ConfigError: the task has no such option, it is not overridable, it has no
      effect, or its value is wrong.
  """
  task = make_task(kind, values)
  allowed = options_that(type(task.options), "overridable")
  names = [token.removeprefix(_OVERRIDE).partition("=")[0] for token in tokens]
  for name in names:
    if name not in allowed:
      raise ConfigError(
        f"--config.task.{name}: only options that say how a file is read, or a "
        f"threshold, can be set here; of {task.name}: "
        f"{', '.join(allowed) or 'none'}"
        f"{removed.remedy(f'task.{name}') or did_you_mean(name, allowed)}"
      )
  config = ConfigDict({"task": option_checks.to_config(task.options)})
  config = overrides.apply_overrides(config, tokens)
  task = make_task(kind, config.task.to_dict())
  unused = option_checks.unused(config, {"task": type(task.options)})
  for name, token in zip(names, tokens, strict=True):
    if reason := unused.get(f"task.{name}"):
      raise ConfigError(
        f"{token} has no effect {reason}: leave it out, or change the other."
      )
  return task
