"""Checks that a workdir holds the run that is to be resumed.

A checkpoint's `identity` is {"config": the effective config as a dict,
"corpus": fingerprint, "tokenizer": SHA-256}. The input of a step must not
change during a run; its logging, length and machine may.
"""

import json
import pathlib
from collections.abc import Callable, Collection, Container, Mapping
from typing import Any

from maskedlm.core.errors import ConfigError
from maskedlm.runtime import buckets

# (a section of config.json, the kind of run that writes it)
_WRITERS = (
  ("objective", "pretraining"),
  ("task", "fine-tuning"),
  ("imported", "an import"),
  ("retokenized", "a model with another vocabulary"),
)
_PATH = "init_from"  # The option that may be spelt in several ways.


def check_workdir(workdir: pathlib.Path, config: Container[str]) -> None:
  """Checks that a workdir doesn't hold another kind of run.

  Args:
    workdir: the folder of a run, which may be new.
    config: the effective config.

  Raises:
    ConfigError: its config.json belongs to another kind of run, or to an
      exported model, and would be overwritten.
  """
  path = workdir / "config.json"
  if not path.exists():
    return
  try:
    found = json.loads(path.read_text("utf-8"))
  except ValueError:
    found = None
  _check_writer(found if isinstance(found, dict) else {}, config, str(workdir))


def check_identity(
  old: Mapping[str, Any],
  new: Mapping[str, Any],
  *,
  frozen: Collection[str],
  log: Callable[[str], None],
) -> None:
  """Compares the identity of a run with that in its checkpoint.

  Args:
    old: the identity in the checkpoint.
    new: the identity of this run.
    frozen: names of the options that must keep their values.
    log: receives a line for each other option that changed.

  Raises:
    ConfigError: a frozen option, the corpus or the tokenizer differs; the
      message lists all differences. Or the checkpoint is of another kind of
      run.
  """
  # First, as the options of two kinds of run differ everywhere.
  _check_writer(old["config"], new["config"], "this workdir")
  refused = [
    f"the {name} was {old[name][:12]}, now {new[name][:12]}"
    for name in ("corpus", "tokenizer")
    if old[name] != new[name]
  ]
  before, now = flatten(old["config"]), flatten(new["config"])
  undo, changed = [], []
  for name in sorted(before.keys() | now.keys()):
    a, b = before.get(name, "(absent)"), now.get(name, "(absent)")
    if a == b or (name == _PATH and buckets.is_same(a, b)):
      continue
    # An option that is not in the checkpoint is newer, and the run behaved as
    # its default.
    if name in before and name in frozen:
      refused.append(f"{name} was {a!r}, now {b!r}")
      undo.append(f"--config.{name}={a}")
    else:
      changed.append(
        f"changed since the checkpoint: {name} was {a!r}, now {b!r}"
      )
  if refused:
    raise ConfigError(
      f"this workdir holds another run: {'; '.join(refused)}. Undo the change"
      f"{': ' if undo else ''}{' '.join(undo)}, or choose another --workdir."
    )
  for line in changed:
    log(line)


def _check_writer(old: Container[str], new: Container[str], where: str) -> None:
  """Raises ConfigError if two configs are of different kinds of run."""
  was, now = (
    next((writer for section, writer in _WRITERS if section in config), "")
    for config in (old, new)
  )
  if was == now:
    return
  held = f"another run: {was}" if was else "a config.json that no run wrote"
  raise ConfigError(
    f"{where} holds {held}, and this is {now}. Choose another --workdir."
  )


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
  """Flattens {"model": {"width": 8}} to {"model.width": 8}."""
  flat = {}
  for name, value in config.items():
    if isinstance(value, Mapping):
      flat.update(flatten(value, f"{prefix}{name}."))
    else:
      flat[prefix + name] = value
  return flat
