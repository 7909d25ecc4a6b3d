"""Reads the config of a run that exists from its workdir's config.json.

`maskedlm pretrain --workdir=RUN` continues RUN without its config file. The
values are the effective ones, those of init_from and of the corpus included.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from ml_collections import ConfigDict

from maskedlm.config import defaults
from maskedlm.core import removed
from maskedlm.core.errors import ConfigError
from maskedlm.core.parse_json import parse_json
from maskedlm.runtime import buckets
from maskedlm.training.checkpoints import resume

# Kind of run (resume.writer) -> the verb that continues it.
_VERBS = {"pretraining": "pretrain", "fine-tuning": "finetune"}


def load_config(
  workdir: str | os.PathLike,
  *,
  kind: str = "pretraining",
  default: Callable[[Mapping[str, Any]], ConfigDict] = lambda values: (
    defaults.default(values["objective"]["name"])
  ),
) -> ConfigDict:
  """Returns the config of the run in a workdir, a folder or an address.

  An option that is newer than the run has its default, and one that this
  version lacks is left out; resume.check_identity reports both.
  train.resume_unverified is reset too, as it is for one start. `kind` is
  "pretraining" or "fine-tuning"; `default` makes the default config, given
  config.json's values.

  Raises:
    ConfigError: config.json is missing or can't be read, another kind of run
      wrote it, or a removed option had a value that is no longer supported.
    StorageError: the address can't be read now.
  """
  path = f"{workdir}/config.json"
  file = buckets.local_copy(path)
  if not file.is_file():
    raise ConfigError(
      f"--workdir={workdir} holds no run to continue, as it has no config.json:"
      " to start one there, give --config=FILE too."
    )
  try:
    values = parse_json(file.read_bytes())
    writer = resume.writer(values if isinstance(values, dict) else {})
  except ValueError:
    writer = ""
  if writer != kind:
    raise ConfigError(_other_kind(workdir, writer, kind))
  try:
    values = removed.renewed(values)
    config = default(values)
    lacking = _fill(config, values)
    config.train.resume_unverified = False
  except (AttributeError, KeyError, TypeError, ValueError) as error:
    raise ConfigError(
      f"{path} is not the config of a run: {error}. Give --config=FILE, as "
      "when the run began."
    ) from None
  for name, value in lacking.items():
    removed.is_removed(name, value)
  return config


def _fill(
  config: ConfigDict, values: Mapping[str, Any], prefix: str = ""
) -> dict[str, Any]:
  """Sets the options that the config has; returns the others, by full name."""
  lacking = {}
  for name, value in values.items():
    if name not in config:
      lacking[prefix + name] = value
    elif isinstance(config[name], ConfigDict):
      lacking |= _fill(config[name], value, f"{prefix}{name}.")
    else:
      config[name] = value
  return lacking


def _other_kind(workdir, writer: str, kind: str) -> str:
  if writer in _VERBS:
    text = (
      f"another run: {writer}. Continue it with `maskedlm {_VERBS[writer]}`"
    )
  elif writer:
    text = f"{writer}: start from it with --config=FILE --config.init_from"
    return f"--workdir={workdir} holds {text}={workdir}, in another --workdir."
  else:
    text = f"a config.json that is not one of {kind}. Give --config=FILE"
  return f"--workdir={workdir} holds {text}, or choose another --workdir."
