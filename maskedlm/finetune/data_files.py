"""Labelled files, as many as a source names, and how they are read.

A test file may have another layout than the training file. `evaluate`,
`predict` and `transfer` take these options of a kind, its READING, as
`finetune` does, so that the remedy of an error message works there, too.
"""

import glob
import pathlib
import re
from collections.abc import Sequence
from typing import Any

from ml_collections import ConfigDict

from maskedlm.config import overrides as flags
from maskedlm.core.errors import ConfigError, DataError, did_you_mean
from maskedlm.data.labelled import tfds_tables
from maskedlm.finetune.config import data_dir
from maskedlm.finetune.contract import Example

HELP = (
  "--config.task.NAME=VALUE: how the file is read, if its layout is another "
  "than the training data's (task.tag_column, task.label, ...), or "
  "task.threshold, where the kind has one."
)


def read(kind: Any, source: str, options: Any) -> list[Example]:
  """The examples of all files of a source, in their order.

  Raises:
    DataError: see `files` and the kind's `read`; an id twice.
  """
  examples = [x for path in files(source) for x in kind.read(path, options)]
  seen: dict[str, str] = {}
  for example in examples:
    if not hasattr(example, "id"):
      break
    if example.id in seen:
      raise DataError(
        f"{example.where}: the id {example.id!r} is there twice, first in "
        f"{seen[example.id]}; expected each once, as predictions are told "
        "apart by it."
      )
    seen[example.id] = example.where
  return examples


def files(source: str) -> list[str]:
  """The files that a source names, each once: FILE, GLOB, or several by commas.

  What is there by that very name is one file, and "tfds:..." is none.

  Raises:
    DataError: wildcards that match nothing, no name; a file of the tutorials
      that isn't there. Of other files the kind's `read` tells.
  """
  if source.startswith(tfds_tables.PREFIX) or pathlib.Path(source).exists():
    return [source]
  found = []
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
      raise DataError(f"{name}: no file matches; expected some with labels.")
    found += matches
  if not found:
    raise DataError(f"{source!r} names no file; expected some with labels.")
  return list(dict.fromkeys(found))


def split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
  """(what is the verb's own, the overrides) of a command line.

  Raises:
    ConfigError: an override that is not of the form.
  """
  overrides = [x for x in argv if re.match(r"--?(no)?config\b", x)]
  for token in overrides:
    if not re.match(r"--config\.task\.\w+=", token):
      raise ConfigError(
        f"{token}: expected --config.task.NAME=VALUE, an option of how the "
        "file is read, or a threshold; all else is the checkpoint's."
      )
  return [x for x in argv if x not in overrides], overrides


def override(kind: Any, options: Any, overrides: Sequence[str]) -> Any:
  """The Options of a kind with overrides as split gives them.

  Raises:
    ConfigError: an option that the kind doesn't have, that says more than how
      a file is read, or whose value is none.
  """
  known = getattr(kind, "READING", ())
  name_of_kind = kind.__name__.rpartition(".")[2]
  for token in overrides:
    name = re.match(r"--config\.task\.(\w+)", token).group(1)
    if name not in known:
      those = f"of {name_of_kind} {', '.join(known)}" if known else "here none"
      raise ConfigError(
        f"--config.task.{name}: what can be set beside a checkpoint is how a "
        f"file is read, {those}{did_you_mean(name, known)}"
      )
  values = {name: getattr(options, name) for name in known}
  config = flags.override(ConfigDict({"task": values}), overrides)
  return options._replace(**config.task.to_dict())
