"""A run's checkpoint folders: which are whole, which to use, which to keep.

Files and names only, no arrays: checkpoint.py stands on this. A folder gets
its final name only after every byte in it is hashed. Under WORKDIR/checkpoints:

  3000/                      a complete step
    params/                  the parameters, which load without the rest
    state/                   all else: step, optimizer moments
    meta/metadata            JSON: shapes, metric, and what the caller gave
    manifest.sha256          `sha256sum -c manifest.sha256` checks it by hand
  4000.unverified/           written whole, but killed before it was hashed
  4000.unverified.orbax-*/   being written, or killed meanwhile
  2000.damaged/              found damaged and set aside; delete it at will
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import IO

MANIFEST = "manifest.sha256"
_NAME = re.compile(r"(\d+)(\.unverified)?")


class CheckpointError(RuntimeError):
  """A checkpoint that can't be written or used: what, where, what to do."""

  exit_code = 2


def _sha256(path: Path) -> str:
  with path.open("rb") as file:
    return hashlib.file_digest(file, "sha256").hexdigest()


def _header(body: str) -> str:
  """A comment to sha256sum; to us it tells a manifest that was cut short."""
  return f"# {hashlib.sha256(body.encode()).hexdigest()}  the lines below"


def _write_manifest(path: Path) -> None:
  files = sorted(p for p in path.rglob("*") if p.is_file())
  body = "".join(f"{_sha256(p)}  {p.relative_to(path)}\n" for p in files)
  with (path / MANIFEST).open("w", encoding="utf-8") as file:
    file.write(f"{_header(body)}\n{body}")
    file.flush()
    os.fsync(file.fileno())  # Before the rename that makes the step complete.


def find_damage(path: Path, items: Sequence[str] = ("",)) -> str | None:
  """What is wrong with a step's files, by its manifest; None if nothing is.

  `items` are the prefixes of the files to check, all by default.
  """
  try:
    text = (path / MANIFEST).read_text("utf-8")
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
        if _sha256(path / name) != digest:
          return f"{name} differs from its SHA-256"
      except OSError as error:
        return f"{name}: {error.strerror}"
  return None


def read_record(path: Path) -> dict:
  """The JSON that checkpoint.py saved with a step."""
  return json.loads((path / "meta" / "metadata").read_text("utf-8"))


def _number(path: Path) -> int:
  return int(path.name.partition(".")[0])


def _saved(directory: Path) -> list[Path]:
  """The folders of complete and of unverified steps, newest first."""
  if not directory.is_dir():
    return []
  found = [p for p in directory.iterdir() if _NAME.fullmatch(p.name)]
  return sorted(found, key=_number, reverse=True)


def complete(directory: Path) -> list[int]:
  """The complete steps, in increasing order."""
  return [int(p.name) for p in _saved(directory)[::-1] if p.name.isdigit()]


def ranked(directory: Path) -> list[int]:
  """The complete steps that have a metric, best (lowest) first."""
  metrics = {}
  for step in complete(directory):
    try:
      metrics[step] = read_record(directory / str(step))["metric"]
    except (OSError, ValueError, KeyError):  # Damaged: a restore will say so.
      metrics[step] = None
  having = [step for step in metrics if metrics[step] is not None]
  return sorted(having, key=lambda step: (metrics[step], -step))


def survey(
  directory: Path, items: Sequence[str] = ("",)
) -> tuple[list[str], dict[str, str]]:
  """Names of folders to load, best first; name -> problem of those not good.

  The newest good one alone, with the problems of those newer; or, where there
  is none, every unverified one, with the problems of all.
  """
  unverified, problems = [], {}
  for path in _saved(directory):
    if not path.name.isdigit():
      problem = "not verified: its save was interrupted, or is going on"
    else:
      problem = find_damage(path, items)
    if problem is None:
      return [path.name], problems
    problems[path.name] = problem
    if not path.name.isdigit() or not (path / MANIFEST).exists():
      unverified.append(path.name)
  return unverified, problems


def find(path: Path, step: int | str | None) -> tuple[Path, str | None]:
  """The folder that holds the steps, and the name of one if one is asked for.

  `path` is WORKDIR, WORKDIR/checkpoints or one step's folder; `step` a number,
  "best" or None. Raises CheckpointError where there is no such step.
  """
  if (path / "params").is_dir():
    return path.parent, path.name
  directory = path / "checkpoints"
  directory = directory if directory.is_dir() else path
  if not _saved(directory):
    raise CheckpointError(
      f"{path} holds no checkpoint: expected a run's workdir, the checkpoints "
      "folder in it, or the folder of one step."
    )
  if step is None:
    return directory, None
  best = ranked(directory)
  name = str(best[0] if step == "best" and best else step)
  if name not in map(str, complete(directory)):
    raise CheckpointError(
      f"step={step!r} is not in {directory}: it has {complete(directory)}, and "
      f"with a held-out loss, best first, {best}."
    )
  return directory, name


def commit(directory: Path, step: int) -> None:
  """Hashes STEP.unverified and gives it its final name."""
  path = directory / f"{step}.unverified"
  _write_manifest(path)
  path.rename(directory / str(step))


def set_aside(directory: Path, name: str) -> None:
  """Frees the name of a damaged step, for it will be saved anew."""
  aside = directory / f"{name}.damaged"
  shutil.rmtree(aside, ignore_errors=True)
  (directory / name).rename(aside)


def delete_old(directory: Path, *, keep_last: int, keep_best: int) -> None:
  """Deletes what is neither new nor best, and what was never verified.

  Orbax's own retention by metric deletes the newest step where it is not among
  the best, and a resume would go back.
  """
  steps = complete(directory)
  kept = {*steps[-keep_last:], *ranked(directory)[:keep_best]}
  for path in _saved(directory):
    superseded = _number(path) <= steps[-1]
    if superseded and path.name not in map(str, kept):
      # Renamed first: a kill meanwhile leaves nothing that looks whole.
      doomed = path.rename(path.with_name(f"{path.name}.deleted"))
      shutil.rmtree(doomed, ignore_errors=True)


def clear(directory: Path) -> None:
  """Deletes what no save will finish any more; only under the lock."""
  for pattern in ("*.orbax-*", "*.deleted"):
    for path in directory.glob(pattern):
      shutil.rmtree(path, ignore_errors=True)


def lock(directory: Path) -> IO:
  """Creates and locks the folder, until the file returned is closed.

  The lock ends with the process, however that ends. Raises CheckpointError
  where it is held already, by another process or by this one.
  """
  try:
    directory.mkdir(parents=True, exist_ok=True)
    file = (directory / ".lock").open("a")
  except OSError as error:
    raise CheckpointError(
      f"{directory} can't be written ({error.strerror}): choose another "
      "--workdir, or make it writable."
    ) from error
  try:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError as error:
    file.close()
    raise CheckpointError(
      f"{directory} is being written by another run, or was not closed by this "
      "one: wait until that ends, or choose another --workdir."
    ) from error
  except OSError:  # A file system without locks.
    pass
  return file
