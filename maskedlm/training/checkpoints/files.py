"""Finds which checkpoint folders of a run are complete, best, damaged or old.

This module handles files and names, not arrays; manager.py builds on it. A step
is complete when it has a manifest, which is written last and atomically. This
works in a bucket too, where nothing can be renamed. In WORKDIR/checkpoints:

  3000/                      a step
    params/                  the parameters, which load without the rest
    state/                   everything else: step, optimizer moments
    meta/metadata            JSON: step, shapes, metric, the caller's `meta`
    manifest.sha256          the SHA-256 of each of these files (manifest.py)
  4000.unfinished            a file: 4000 is being saved, or was when killed
  4000.orbax-*/              being written, or killed while it was
  4000/                      without a manifest: killed before it was hashed
  1000/                      without a manifest: killed while it was deleted
  2000.damaged/              found damaged and renamed; may be deleted

A path is a pathlib.Path, or an epath.Path for an address (runtime/buckets.py).
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from maskedlm.core.counts import sized
from maskedlm.core.errors import CheckpointError, ConfigError, StorageError
from maskedlm.runtime import buckets, console, output_files, storage_errors
from maskedlm.runtime.multihost import SHARED
from maskedlm.training.checkpoints import manifest

T = TypeVar("T")
Log = Callable[[str], None]
_UNFINISHED, _DAMAGED = ".unfinished", ".damaged"


def _steps(directory: Path) -> list[Path]:
  """Returns the folders of steps, complete or not, newest first."""
  if not directory.is_dir():
    return []
  folders = [
    p for p in directory.iterdir() if manifest.is_step(p.name) and p.is_dir()
  ]
  return sorted(folders, key=lambda path: int(path.name), reverse=True)


def all_steps(directory: Path) -> list[tuple[int, Path]]:
  """Returns (step, folder) in increasing order, damaged ones included."""
  folders = directory.iterdir() if directory.is_dir() else ()
  named = ((p.name.removesuffix(_DAMAGED), p) for p in folders if p.is_dir())
  return sorted((int(name), p) for name, p in named if manifest.is_step(name))


def _is_complete(path: Path) -> bool:
  return (path / manifest.MANIFEST).exists()


def complete_steps(directory: Path) -> list[int]:
  """Returns the complete steps, in increasing order."""
  return [int(p.name) for p in _steps(directory)[::-1] if _is_complete(p)]


def ranked_steps(directory: Path) -> list[int]:
  """Returns the complete steps that have a metric, best (lowest) first.

  Those with a damaged record are left out.
  """
  records = (
    manifest.find_record(directory / str(step))
    for step in complete_steps(directory)
  )
  ranked = [r for r in records if r and r["metric"] is not None]
  ranked.sort(key=lambda record: (record["metric"], -record["step"]))
  return [record["step"] for record in ranked]


class Survey(NamedTuple):
  """The steps of a run, newest first."""

  good: list[str]  # The newest one that is as its manifest says, if any.
  unverified: list[str]  # If none is good: those without a manifest.
  problems: dict[str, str]  # Of the steps newer than the good one.


def survey(directory: Path, items: Sequence[str] = ("",)) -> Survey:
  """Finds the steps in WORKDIR/checkpoints that can be loaded.

  `items` are as in `manifest.find_damage`.

  Raises:
    ConfigError, StorageError: the folder can't be read.
  """
  unverified: list[str] = []
  problems: dict[str, str] = {}
  with storage_errors.bucket_errors(directory):
    for path in _steps(directory):
      problem = manifest.find_damage(path, items)
      if problem is None:
        return Survey([path.name], [], problems)
      if not _is_complete(path):
        unverified.append(path.name)
        problem += ": its save was interrupted or is in progress, or it is lost"
      problems[path.name] = problem
  return Survey([], unverified, problems)


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
  names: Sequence[str],
  problems: Mapping[str, str],
  remedy: str,
  log: Log,
) -> tuple[Any, list[str]]:
  """Loads the newest step that can be.

  Args:
    directory: WORKDIR/checkpoints.
    load: folder of a step -> the result.
    names: the steps to try: those that are good, or may be used unverified.
    problems: those of other steps, and of the unverified ones.
    remedy: what helps if there are steps, but none can be used.
    log: receives a line for each newer step that is not used.

  Returns:
    (the result, names of the newer steps that can't be used); (None, []) if
    there are no steps.

  Raises:
    CheckpointError: no step can be used.
  """
  problems = dict(problems)
  for name in names:
    try:
      loaded = load(directory / name)
    except Exception as error:  # Orbax and TensorStore raise many types.
      if name not in problems or isinstance(
        error, CheckpointError | ConfigError
      ):
        raise  # A verified step isn't damaged: another state, or a bug.
      problems[name] = f"it can't be read: {storage_errors.reason(error)}"
      continue
    newer = list(problems)
    if name in problems:
      newer = newer[: newer.index(name)]
    for other in newer:
      log(f"checkpoint {other} is not used: {problems[other]}")
    if name in problems:
      log(f"using checkpoint {name} unverified: {problems[name]}")
    elif newer:
      log(f"falling back to checkpoint {name}")
    return loaded, newer
  if problems:
    raise CheckpointError(
      f"no usable checkpoint in {directory}: "
      + "; ".join(f"{name}: {problems[name]}" for name in problems)
      + f". Put a good copy there, {remedy}"
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

  A step without a manifest is used, with a line in the log, only if `path` is
  its folder.

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
    names, unverified, problems = survey(directory, items)
    remedy = "or wait for the next checkpoint if the run is in progress."
    if unverified:
      remedy = f"or give {directory / unverified[0]} to use it unverified."
  else:
    problem = manifest.find_damage(directory / name, items)
    if problem and _is_complete(directory / name):
      raise CheckpointError(
        f"checkpoint {directory / name} is damaged: {problem}. Restore it from "
        f"a copy, or use another step of {directory}; it has "
        f"{complete_steps(directory)}."
      )
    names, problems = [name], {name: problem} if problem else {}
    remedy = "or use another step."
  return load_newest(
    directory, load, names=names, problems=problems, remedy=remedy, log=log
  )[0]


def load_record(path: Path) -> dict:
  """Returns the record of the newest good step.

  Arrays are neither read nor verified. Errors are as in load_step.
  """
  read = manifest.read_record
  return load_step(path, None, read, items=("meta/",), log=console.warn)


def quarantine(directory: Path, name: str) -> None:
  """Renames a damaged step, so that it can be saved again."""
  aside = directory / f"{name}{_DAMAGED}"
  buckets.remove(aside)
  (directory / name).rename(aside)


def discard(directory: Path, step: int) -> None:
  """Deletes all files of a step."""
  path = directory / str(step)
  # First, so that a kill leaves nothing that looks complete.
  (path / manifest.MANIFEST).unlink(missing_ok=True)
  buckets.remove(path)


def delete_old(
  directory: Path, *, keep_last: int, keep_best: int, keep_every: int
) -> None:
  """Deletes complete steps that nothing keeps, and incomplete ones.

  Those that are kept are the newest, the best, and, unless keep_every is 0, the
  multiples of it.

  Orbax's retention by metric is not used: it deletes the newest step unless it
  is among the best, so a resumed run would go back.
  """
  steps = complete_steps(directory)
  kept = {*steps[-keep_last:], *ranked_steps(directory)[:keep_best]}
  if keep_every:
    kept |= {step for step in steps if step % keep_every == 0}
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
      f"{directory} has {sized(free)} free, and a checkpoint takes "
      f"{sized(needed)}: make room or choose another --workdir, and run again."
    )


def check_names(directory: Path) -> None:
  """Raises CheckpointError if a file has the name of a step."""
  with storage_errors.bucket_errors(directory):
    for path in directory.iterdir() if directory.is_dir() else ():
      if manifest.is_step(path.name) and not path.is_dir():
        raise CheckpointError(
          f"{path} is a file, where a folder of step {path.name} may be saved: "
          "move it away."
        )


def begin(directory: Path, step: int) -> None:
  """Marks a step as being saved, until `end`."""
  discard(directory, step)  # An unfinished save of a killed run.
  output_files.write_text(directory / f"{step}{_UNFINISHED}", "")


def end(directory: Path, record: dict) -> None:
  """Completes the step of a record, whose arrays are written."""
  manifest.commit(directory, record)
  (directory / f"{record['step']}{_UNFINISHED}").unlink(missing_ok=True)


def clear_unfinished(directory: Path) -> list[str]:
  """Deletes unfinished saves, and what killed runs left in the workdir.

  Only the holder of the lock may call it.

  Returns:
    The steps whose saves were interrupted before they were verified.
  """
  deleted = []
  with storage_errors.bucket_errors(directory):
    for path in directory.glob(f"*{_UNFINISHED}"):
      step = directory / path.name.removesuffix(_UNFINISHED)
      if manifest.is_step(step.name):
        if not _is_complete(step):
          buckets.remove(step)
          deleted.append(step.name)
        buckets.remove(path)
    workdir = directory.parent
    for path in *directory.glob("*.orbax-*"), *workdir.glob(f"{SHARED}*"):
      buckets.remove(path)
  if not buckets.is_address(directory):
    for folder in directory, workdir:
      output_files.clear_unfinished(folder)
  return deleted


def clear_older(directory: Path, step: int) -> None:
  """Deletes what killed runs left of the steps that they were deleting."""
  with storage_errors.bucket_errors(directory):
    for path in _steps(directory):
      if int(path.name) < step and not _is_complete(path):
        buckets.remove(path)
