"""Checks that a workdir holds the run that is to be resumed.

A checkpoint's `identity` is {"config": the effective config as a dict,
"corpus": fingerprint, "tokenizer": SHA-256}. The input of a step must not
change during a run; its logging, length and machine may.
"""

import dataclasses
import pathlib
import shlex
from collections.abc import Callable, Collection, Container, Mapping
from typing import Any

from maskedlm.core import removed
from maskedlm.core.errors import ConfigError
from maskedlm.core.parse_json import parse_json
from maskedlm.data.options import CorpusOptions
from maskedlm.data.sources import same_files
from maskedlm.runtime import buckets

# (a section of config.json, the kind of run that writes it)
_WRITERS = (
  ("objective", "pretraining"),
  ("task", "fine-tuning"),
  ("imported", "an import"),
  ("retokenized", "a model with another vocabulary"),
  ("averaged", "an average"),
)
# What runs write in a workdir.
_FILES = (
  *("config.json", "parameters.txt", "metrics.jsonl", "result.json"),
  *("predictions.jsonl", "suite.json", "sweep.json", "tracker.json"),
)
_FOLDERS = (
  *("checkpoints", "code", "corpus", "profile", "tensorboard", "tokenizer"),
)
# Options that make no difference to the corpus.
_NO_DIFFERENCE = {
  f"corpus.{field.name}"
  for field in dataclasses.fields(CorpusOptions)
  if field.metadata["machine"]
}


def check_workdir(workdir: pathlib.Path, config: Container[str]) -> None:
  """Checks that a workdir doesn't hold another kind of run, or strange files.

  Args:
    workdir: the folder of a run, which may be new.

  Raises:
    ConfigError: its config.json belongs to another kind of run, or to an
      exported model, and would be overwritten; or a file is where a run has a
      folder, or the reverse, which it would find at its end.
  """
  for names, is_right, kind in (
    (_FILES, pathlib.Path.is_file, "file"),
    (_FOLDERS, pathlib.Path.is_dir, "folder"),
  ):
    for name in names:
      if (workdir / name).exists() and not is_right(workdir / name):
        raise ConfigError(
          f"{workdir / name} is not a {kind}, as runs write it: move it, or "
          "choose another --workdir."
        )
  if (workdir / "config.json").exists():
    _check_writer(read_config(workdir), config, str(workdir))


def read_config(workdir: pathlib.Path) -> dict[str, Any]:
  """Returns the config.json of a workdir; {} if there is none that is good."""
  try:
    config = parse_json((workdir / "config.json").read_text("utf-8"))
  except (FileNotFoundError, ValueError):
    return {}
  return config if isinstance(config, dict) else {}


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
      message lists all differences. Or an option that was removed had a value
      that is no longer supported. Or the checkpoint is of another kind of run.
  """
  # First, as the options of two kinds of run differ everywhere.
  _check_writer(old["config"], new["config"], "this workdir")
  hashes = [
    (n, str(old.get(n))[:12], str(new.get(n))[:12])
    for n in ("corpus", "tokenizer", "teacher")
  ]
  refused = [f"the {n} was {a}, now {b}" for n, a, b in hashes if a != b]
  different = [n for n, a, b in hashes if a != b]
  before = flatten(removed.renewed(old["config"]))
  now = flatten(new["config"])
  undo, changed = [], []
  for name in sorted(before.keys() | now.keys()):
    a, b = before.get(name, "(absent)"), now.get(name, "(absent)")
    if same_files.is_same(name, a, b):
      continue
    if name not in now and removed.is_removed(name, a):
      continue
    # An option that is not in the checkpoint is newer, and the run behaved as
    # its default.
    decides = name.split(".")[0] in different and name not in _NO_DIFFERENCE
    if name in before and (name in frozen or decides):
      refused.append(f"{name} was {a!r}, now {b!r}")
      undo.append(_as_flag(name, a))
    else:
      changed.append(
        f"changed since the checkpoint: {name} was {a!r}, now {b!r}"
      )
  if refused:
    remedy = (
      f"Undo the change: {' '.join(undo)}"
      if undo
      else "Files at the same place have changed: restore them"
    )
    raise ConfigError(
      f"this workdir holds another run: {'; '.join(refused)}. {remedy}, or "
      "choose another --workdir."
    )
  for line in changed:
    log(line)


def check_continued(
  path: str,
  old: Mapping[str, Any],
  new: Mapping[str, Any],
  *,
  log: Callable[[str], None],
) -> None:
  """Compares a run's identity with that of the one at `path` that it continues.

  A line is logged for each option that differs.

  Raises:
    ConfigError: the tokenizer is another, or it is another kind of run.
  """
  was, now = writer(old["config"]), writer(new["config"])
  if was != now:
    raise ConfigError(f"continue_from={path} is {was}, and this is {now}.")
  if old["tokenizer"] != new["tokenizer"]:
    raise ConfigError(
      f"continue_from={path} has the tokenizer {old['tokenizer'][:12]}, and "
      f"this corpus {new['tokenizer'][:12]}: prepare the text with "
      f"--config.tokenizer.path={path}/tokenizer."
    )
  if old["corpus"] != new["corpus"]:
    log(f"other text than in {path}: corpus {new['corpus'][:12]}")
  before = flatten(removed.renewed(old["config"]))
  after = flatten(new["config"])
  for name in sorted(before.keys() & after.keys()):
    expected = (
      name in ("name", "continue_from") or name.split(".")[0] == "corpus"
    )
    if before[name] != after[name] and not expected:
      log(f"other than in {path}: {name}={after[name]!r}, was {before[name]!r}")


def check_corpus_options(
  workdir: pathlib.Path, config: Mapping[str, Any]
) -> None:
  """Checks that the options of a corpus are those of the run in a workdir.

  Only for a corpus that isn't there yet or doesn't fit: the same corpus may be
  at another path.

  Args:
    workdir: the folder of a run of pretraining, which may be new.
    config: the effective config, as a dict.

  Raises:
    ConfigError: the options of the corpus or the tokenizer differ from those of
      its config.json; the message lists what to add.
  """
  before, now = flatten(read_config(workdir)), flatten(config)
  different = {
    name: before[name]
    for name in sorted(before.keys() & now.keys())
    if name.split(".")[0] in ("corpus", "tokenizer")
    and name not in _NO_DIFFERENCE
    and not same_files.is_same(name, before[name], now[name])
  }
  name = "corpus.path"
  if different.get(name):  # The other options don't matter then.
    different = {name: different[name]}
  if different:
    was = ", ".join(f"{n}={x!r} (now {now[n]!r})" for n, x in different.items())
    add = " ".join(_as_flag(n, x) for n, x in different.items())
    raise ConfigError(
      f"{buckets.origin(workdir)} holds a run with {was}: add {add}, or leave "
      "out --config to continue it, or choose another --workdir."
    )


def writer(config: Container[str]) -> str:
  """Returns the kind of run that wrote a config.json; "" for none."""
  return next((kind for section, kind in _WRITERS if section in config), "")


def _check_writer(old: Container[str], new: Container[str], where: str) -> None:
  """Raises ConfigError if two configs are of different kinds of run."""
  was, now = writer(old), writer(new)
  if was == now:
    return
  held = f"another run: {was}" if was else "a config.json that no run wrote"
  raise ConfigError(
    f"{where} holds {held}, and this is {now}. Choose another --workdir."
  )


def _as_flag(name: str, value: Any) -> str:
  return f"--config.{name}={shlex.quote(str(value))}"


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
  """Flattens {"model": {"width": 8}} to {"model.width": 8}."""
  flat = {}
  for name, value in config.items():
    if isinstance(value, Mapping):
      flat.update(flatten(value, f"{prefix}{name}."))
    else:
      flat[prefix + name] = value
  return flat
