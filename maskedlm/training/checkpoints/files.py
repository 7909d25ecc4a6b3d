"""Finds which checkpoint folders of a run are complete, best, damaged or old.

This module handles files and names, not arrays; manager.py builds on it. A step
is complete when it has a manifest, which is written last and atomically. This
works in a bucket too, where nothing can be renamed. In WORKDIR/checkpoints:

  3000/                      a step
    params/                  the parameters, which load without the rest
    state/                   everything else: step, optimizer moments
    meta/metadata            JSON: shapes, metric, and the caller's `meta`
    manifest.sha256          `sha256sum -c manifest.sha256` checks it by hand
  4000/                      without a manifest: killed before it was hashed
  4000.orbax-*/              being written, or killed while it was
  2000.damaged/              found damaged and renamed; may be deleted

A path is a pathlib.Path, or an epath.Path for an address (runtime/buckets.py).
"""

import concurrent.futures
import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from maskedlm.core.errors import CheckpointError, ConfigError, StorageError
from maskedlm.runtime import buckets, output_files, storage_errors

T = TypeVar("T")
Log = Callable[[str], None]
MANIFEST = "manifest.sha256"
_RECORD = "meta/metadata"


def warn(line: str) -> None:
  """Prints a line to stderr: the default log."""
  print(line, file=sys.stderr)


def _header(body: str) -> str:
  """Returns a comment for sha256sum, which reveals a truncated manifest."""
  return f"# {hashlib.sha256(body.encode()).hexdigest()}  the lines below"


def _write_manifest(path: Path, body: str) -> None:
  output_files.write_text(path / MANIFEST, f"{_header(body)}\n{body}")


def commit(directory: Path, step: int) -> None:
  """Hashes a step's files and writes its manifest, which makes it complete."""
  path = directory / str(step)
  names = buckets.list_files(path)
  with concurrent.futures.ThreadPoolExecutor() as pool:
    digests = pool.map(lambda name: output_files.sha256(path / name), names)
    lines = zip(digests, names, strict=True)
    body = "".join(f"{digest}  {name}\n" for digest, name in lines)
  _write_manifest(path, body)


def _read(path: Path, read: Callable[[Path], str]) -> str:
  """Returns read(path); in a bucket, only a missing file counts as damage.

  Raises:
    ConfigError, StorageError: the bucket can't be reached.
  """
  try:
    return read(path)
  except (FileNotFoundError, UnicodeDecodeError):
    raise
  except Exception as error:  # gcsfs raises many types.
    if not buckets.is_address(path):
      raise
    raise storage_errors.unreachable(path, error) from error


def find_damage(path: Path, items: Sequence[str] = ("",)) -> str | None:
  """Checks a step's files against its manifest.

  Args:
    path: the folder of the step.
    items: prefixes of the files to check; by default all.

  Returns:
    The first problem found, or None.

  Raises:
    ConfigError, StorageError: a bucket can't be reached.
  """
  try:
    text = _read(path / MANIFEST, lambda file: file.read_text("utf-8"))
  except OSError:
    return f"{MANIFEST} is missing"
  except ValueError:
    return f"{MANIFEST} is damaged"
  header, _, body = text.partition("\n")
  if header != _header(body):
    return f"{MANIFEST} is damaged"
  for line in body.splitlines():
    digest, name = line.split("  ", 1)
    if name.startswith(tuple(items)):
      try:
        if _read(path / name, output_files.sha256) != digest:
          return f"{name} differs from its SHA-256"
      except OSError as error:
        return f"{name}: {error.strerror}"
  return None


def read_record(path: Path) -> dict:
  """Returns the JSON that manager.py saved with a step."""
  return json.loads((path / _RECORD).read_text("utf-8"))


def replace_record(path: Path, record: dict) -> None:
  """Replaces a complete step's record; the step stays valid after a kill."""
  lines = (path / MANIFEST).read_text("utf-8").splitlines(keepends=True)[1:]
  kept = "".join(line for line in lines if not line.endswith(f"  {_RECORD}\n"))
  _write_manifest(path, kept)  # Until the end, either record is valid.
  output_files.write_text(path / _RECORD, json.dumps(record))
  _write_manifest(
    path, f"{kept}{output_files.sha256(path / _RECORD)}  {_RECORD}\n"
  )


def meta(record: dict) -> dict:
  """Returns the `meta` that the step was saved with, its step and metric."""
  return {**record["meta"], "step": record["step"], "metric": record["metric"]}


def _steps(directory: Path) -> list[Path]:
  """Returns the folders of steps, complete or not, newest first."""
  if not directory.is_dir():
    return []
  found = [p for p in directory.iterdir() if _is_step(p.name) and p.is_dir()]
  return sorted(found, key=lambda path: int(path.name), reverse=True)


def _is_step(name: str) -> bool:
  return name.isdecimal() and name == str(int(name))


def _is_complete(path: Path) -> bool:
  return (path / MANIFEST).exists()


def complete_steps(directory: Path) -> list[int]:
  """Returns the complete steps, in increasing order."""
  return [int(p.name) for p in _steps(directory)[::-1] if _is_complete(p)]


def ranked_steps(directory: Path) -> list[int]:
  """Returns the complete steps that have a metric, best (lowest) first."""
  metrics = {}
  for step in complete_steps(directory):
    try:
      metrics[step] = read_record(directory / str(step))["metric"]
    except (OSError, ValueError, KeyError):  # Damaged: restoring reports it.
      metrics[step] = None
  having = [step for step in metrics if metrics[step] is not None]
  return sorted(having, key=lambda step: (metrics[step], -step))


def survey(
  directory: Path, items: Sequence[str] = ("",)
) -> tuple[list[str], dict[str, str]]:
  """Finds the folders of steps that can be loaded.

  Args:
    directory: WORKDIR/checkpoints.
    items: as in `find_damage`.

  Returns:
    (names of folders to try in order, {name: problem}). If there is a good
    step, these are the newest one, and the problems of the steps newer than it;
    otherwise all unverified steps, and the problems of all steps.

  Raises:
    ConfigError, StorageError: the folder can't be read.
  """
  unverified, problems = [], {}
  with storage_errors.bucket_errors(directory):
    for path in _steps(directory):
      if _is_complete(path):
        problem = find_damage(path, items)
      else:
        problem = "not verified: its save was interrupted, or is in progress"
        unverified.append(path.name)
      if problem is None:
        return [path.name], problems
      problems[path.name] = problem
  return unverified, problems


def find_step(path: Path, step: int | str | None) -> tuple[Path, str | None]:
  """Returns the folder of the steps, and the name of the requested one.

  Args:
    path: WORKDIR, WORKDIR/checkpoints or the folder of a step, which is the
      requested one whatever `step` is.
    step: a number, "best", or None for the newest, whose name is then None.

  Raises:
    CheckpointError: there is no such step.
  """
  if (path / "params").is_dir():
    return path.parent, path.name
  directory = path / "checkpoints"
  directory = directory if directory.is_dir() else path
  if not _steps(directory):
    raise CheckpointError(
      f"{path} has no checkpoint: expected the workdir of a run, its "
      "checkpoints folder, or the folder of a step."
    )
  if step is None:
    return directory, None
  best = ranked_steps(directory)
  name = str(best[0] if step == "best" and best else step)
  complete = complete_steps(directory)
  if name not in map(str, complete):
    raise CheckpointError(
      f"step={step!r} is not in {directory}; it has {complete}, and with a "
      f"held-out metric, best first, {best}."
    )
  return directory, name


def load_newest(
  directory: Path,
  load: Callable[[Path], T],
  *,
  survey: Callable[[], tuple[list[str], dict[str, str]]],
  log: Log,
) -> tuple[T | None, list[str]]:
  """Loads the newest good step, or an unverified one if none is good.

  Args:
    directory: WORKDIR/checkpoints.
    load: folder of a step -> the result.
    survey: () -> the result of `survey(directory)`.
    log: receives a line for each newer step that is not used.

  Returns:
    (the result, names of the newer steps that can't be used); (None, []) if
    there are no steps.

  Raises:
    CheckpointError: no step can be used.
  """
  usable, problems = survey()
  for name in usable:
    try:
      loaded = load(directory / name)
    except Exception as error:  # Orbax and TensorStore raise many types.
      if name not in problems or isinstance(error, CheckpointError):
        raise  # A verified step isn't damaged: another state, or a bug.
      problems[name] = f"it can't be read: {storage_errors.reason(error)}"
      continue
    newer = list(problems)
    if name in problems:
      newer = newer[: newer.index(name)]
    for other in newer:
      log(f"checkpoint {other} is not used: {problems[other]}")
    if name in problems:
      log(
        f"using checkpoint {name} unverified, as none is verified: "
        f"{problems[name]}"
      )
    elif newer:
      log(f"falling back to checkpoint {name}")
    return loaded, newer
  if problems:
    raise CheckpointError(
      f"no usable checkpoint in {directory}: "
      + "; ".join(f"{name}: {problems[name]}" for name in problems)
      + ". Put a good copy there, or choose another --workdir to start over."
    )
  return None, []


def load_step(
  path: Path,
  step: int | str | None,
  load: Callable[[Path], T],
  *,
  items: Sequence[str],
  log: Log,
) -> T:
  """Returns load(folder) for the requested step, or for the newest good one.

  Args:
    path, step: as in `find_step`.
    load: folder of a step -> the result.
    items: prefixes of the files to verify.
    log: receives a line for each problem that is passed over.

  Raises:
    CheckpointError: there is no such step, or it is damaged.
    ConfigError, StorageError: the folder can't be read.
  """
  directory, name = find_step(path, step)
  if name is None:
    return load_newest(
      directory, load, survey=lambda: survey(directory, items), log=log
    )[0]
  problem = find_damage(directory / name, items)
  if problem and _is_complete(directory / name):
    raise CheckpointError(
      f"checkpoint {directory / name} is damaged: {problem}. Leave out the "
      "step to use the newest good one."
    )
  if problem:
    log(f"using {directory / name} unverified: {problem}")
  return load(directory / name)


def load_record(
  path: Path, *, step: int | str | None = None, log: Log = warn
) -> dict:
  """Returns the record of the requested step, or of the newest good one.

  Arrays are neither read nor verified. Arguments and errors are as in
  load_step.
  """
  return load_step(path, step, read_record, items=("meta/",), log=log)


def quarantine(directory: Path, name: str) -> None:
  """Renames a damaged step, so that it can be saved again."""
  aside = directory / f"{name}.damaged"
  buckets.remove(aside)
  (directory / name).rename(aside)


def discard(directory: Path, step: int) -> None:
  """Deletes all files of a step."""
  path = directory / str(step)
  # First, so that a kill leaves nothing that looks complete.
  (path / MANIFEST).unlink(missing_ok=True)
  buckets.remove(path)


def delete_old(directory: Path, *, keep_last: int, keep_best: int) -> None:
  """Deletes complete steps that are neither new nor best, and incomplete ones.

  Orbax's retention by metric is not used: it deletes the newest step unless it
  is among the best, so a resumed run would go back.
  """
  steps = complete_steps(directory)
  kept = {*steps[-keep_last:], *ranked_steps(directory)[:keep_best]}
  for path in _steps(directory):
    step = int(path.name)
    if step <= steps[-1] and step not in kept:
      discard(directory, step)


def check_room(directory: Path, needed: int) -> None:
  """Checks that a disk (not a bucket) has room for these bytes.

  Raises:
    StorageError: it is too full.
    ConfigError: it is too small.
  """
  if buckets.is_address(directory):
    return
  disk = shutil.disk_usage(directory)
  free = disk.free
  if free < needed:
    # A retry can't help where it never fits.
    error = StorageError if needed <= disk.total else ConfigError
    raise error(
      f"{directory} has {free / 1e9:,.3f} GB free, and a checkpoint takes "
      f"{needed / 1e9:,.3f} GB: make room or choose another --workdir, and run "
      "again."
    )


def check_names(directory: Path) -> None:
  """Raises CheckpointError if a file has the name of a step."""
  with storage_errors.bucket_errors(directory):
    for path in directory.iterdir() if directory.is_dir() else ():
      if _is_step(path.name) and not path.is_dir():
        raise CheckpointError(
          f"{path} is a file, where a folder of step {path.name} may be saved: "
          "move it away."
        )


def clear_unfinished(directory: Path) -> None:
  """Deletes unfinished saves; only the holder of the lock may call it."""
  with storage_errors.bucket_errors(directory):
    for path in directory.glob("*.orbax-*"):
      buckets.remove(path)
