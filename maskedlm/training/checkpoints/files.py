"""A run's checkpoint folders: which are whole, which to use, which to keep.

Files and names only, no arrays: checkpoint.py stands on this. A step is
complete when its manifest is in it, which is written last, and whole or not at
all: that holds in a folder as in a bucket, where nothing can be renamed. Under
WORKDIR/checkpoints:

  3000/                      a step
    params/                  the parameters, which load without the rest
    state/                   all else: step, optimizer moments
    meta/metadata            JSON: shapes, metric, and what the caller gave
    manifest.sha256          `sha256sum -c manifest.sha256` checks it by hand
  4000/                      without manifest: killed before it was hashed
  4000.orbax-*/              being written, or killed meanwhile
  2000.damaged/              found damaged and set aside; delete it at will

A path here is a pathlib.Path, or an epath.Path for an address (remote.py).
"""

import concurrent.futures
import hashlib
import json
import os
import shutil
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from maskedlm.core.errors import CheckpointError, StorageError
from maskedlm.runtime import buckets, output_files, storage_errors

T = TypeVar("T")
Log = Callable[[str], None]
MANIFEST = "manifest.sha256"
_RECORD = "meta/metadata"


def warn(line: str) -> None:
  """Discards log lines: the default log."""
  print(line, file=sys.stderr)


def _header(body: str) -> str:
  """A comment to sha256sum; to us it tells a manifest that was cut short."""
  return f"# {hashlib.sha256(body.encode()).hexdigest()}  the lines below"


def _write_manifest(path: Path, body: str) -> None:
  output_files.write_text(path / MANIFEST, f"{_header(body)}\n{body}")


def commit(directory: Path, step: int) -> None:
  """Hashes what was written of a step, which completes it."""
  path = directory / str(step)
  names = buckets.list_files(path)
  with concurrent.futures.ThreadPoolExecutor() as pool:
    digests = pool.map(lambda name: output_files.sha256(path / name), names)
    lines = zip(digests, names, strict=True)
    body = "".join(f"{digest}  {name}\n" for digest, name in lines)
  _write_manifest(path, body)


def _read(path: Path, read: Callable[[Path], str]) -> str:
  """Returns read(path); in a bucket, only a missing file is damage."""
  try:
    return read(path)
  except (FileNotFoundError, UnicodeDecodeError):
    raise
  except Exception as error:  # gcsfs raises many kinds.
    if not buckets.is_address(path):
      raise
    raise storage_errors.unreachable(path, error) from error


def find_damage(path: Path, items: Sequence[str] = ("",)) -> str | None:
  """Returns the problem of a step's files by its manifest; None if good.

  `items` are the prefixes of the files to check, all by default. Raises
  ConfigError or StorageError for a bucket that can't be reached.
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
  """Gives a complete step another record; whole after a kill at any point."""
  lines = (path / MANIFEST).read_text("utf-8").splitlines(keepends=True)[1:]
  kept = "".join(line for line in lines if not line.endswith(f"  {_RECORD}\n"))
  _write_manifest(path, kept)  # Both records are good meanwhile.
  output_files.write_text(path / _RECORD, json.dumps(record))
  _write_manifest(
    path, f"{kept}{output_files.sha256(path / _RECORD)}  {_RECORD}\n"
  )


def meta(record: dict) -> dict:
  """What the caller gave, and the step and its metric."""
  return {**record["meta"], "step": record["step"], "metric": record["metric"]}


def _steps(directory: Path) -> list[Path]:
  """Returns the folders of steps, complete or not, newest first."""
  if not directory.is_dir():
    return []
  found = [path for path in directory.iterdir() if path.name.isdigit()]
  return sorted(found, key=lambda path: int(path.name), reverse=True)


def _is_complete(path: Path) -> bool:
  return (path / MANIFEST).exists()


def complete(directory: Path) -> list[int]:
  """Returns the complete steps, in increasing order."""
  return [int(p.name) for p in _steps(directory)[::-1] if _is_complete(p)]


def ranked(directory: Path) -> list[int]:
  """Returns the complete steps that have a metric, best (lowest) first."""
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
  """Returns (folders to load, best first; {name: problem} of the others).

  The newest good one alone, with the problems of those newer; or, where there
  is none, every unverified one, with the problems of all. Raises ConfigError
  or StorageError where the folder can't be read.
  """
  unverified, problems = [], {}
  with storage_errors.bucket_errors(directory):
    for path in _steps(directory):
      if _is_complete(path):
        problem = find_damage(path, items)
      else:
        problem = "not verified: its save was interrupted, or is going on"
        unverified.append(path.name)
      if problem is None:
        return [path.name], problems
      problems[path.name] = problem
  return unverified, problems


def find(path: Path, step: int | str | None) -> tuple[Path, str | None]:
  """Returns the folder of the steps, and the name of a requested step.

  `path` is WORKDIR, WORKDIR/checkpoints or one step's folder; `step` a number,
  "best" or None. Raises CheckpointError where there is no such step.
  """
  if (path / "params").is_dir():
    return path.parent, path.name
  directory = path / "checkpoints"
  directory = directory if directory.is_dir() else path
  if not _steps(directory):
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


def load_newest(
  directory: Path,
  load: Callable[[Path], T],
  *,
  survey: Callable[[], tuple[list[str], dict[str, str]]],
  log: Log,
) -> tuple[T | None, list[str]]:
  """Returns load(path) of the newest good step, and newer damaged steps.

  An unverified step is used only where no good one is left. (None, []) when
  there is nothing at all; CheckpointError when there is nothing usable.
  """
  usable, problems = survey()
  for name in usable:
    try:
      loaded = load(directory / name)
    except Exception as error:  # Orbax and TensorStore raise many kinds.
      if name not in problems or isinstance(error, CheckpointError):
        raise  # Of a verified step: not damage, but not this state, or a bug.
      problems[name] = f"it can't be read: {storage_errors.reason(error)}"
      continue
    newer = list(problems)
    if name in problems:
      newer = newer[: newer.index(name)]
    for other in newer:
      log(f"checkpoint {other} is not used: {problems[other]}")
    if name in problems:
      log(
        f"using checkpoint {name} without verification, for none is verified: "
        f"{problems[name]}"
      )
    elif newer:
      log(f"falling back to checkpoint {name}")
    return loaded, newer
  if problems:
    raise CheckpointError(
      f"no usable checkpoint in {directory}: "
      + "; ".join(f"{name}: {problems[name]}" for name in problems)
      + ". Put a good copy there, or choose another --workdir to start anew."
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
  """Returns load(folder) of the requested step, or the newest good one.

  Raises CheckpointError when there is none, and when the one that was asked
  for is damaged or absent. Only files that begin with `items` are verified.
  """
  directory, name = find(path, step)
  if name is None:
    return load_newest(
      directory, load, survey=lambda: survey(directory, items), log=log
    )[0]
  problem = find_damage(directory / name, items)
  if problem and _is_complete(directory / name):
    raise CheckpointError(
      f"checkpoint {directory / name} is damaged: {problem}. Without a step, "
      "the newest good one is chosen."
    )
  if problem:
    log(f"using {directory / name} without verification: {problem}")
  return load(directory / name)


def load_record(
  path: Path, *, step: int | str | None = None, log: Log = warn
) -> dict:
  """Returns read_record of the requested step, or the newest good one.

  Its arrays are neither read nor verified. Raises as load_step does.
  """
  return load_step(path, step, read_record, items=("meta/",), log=log)


def set_aside(directory: Path, name: str) -> None:
  """Frees the name of a damaged step, for it will be saved anew."""
  aside = directory / f"{name}.damaged"
  buckets.remove(aside)
  (directory / name).rename(aside)


def discard(directory: Path, step: int) -> None:
  """Deletes all files of a step."""
  path = directory / str(step)
  # First: a kill meanwhile leaves nothing that looks whole.
  (path / MANIFEST).unlink(missing_ok=True)
  buckets.remove(path)


def delete_old(directory: Path, *, keep_last: int, keep_best: int) -> None:
  """Deletes what is neither new nor best, and what was never verified.

  Orbax's own retention by metric deletes the newest step where it is not among
  the best, and a resume would go back.
  """
  steps = complete(directory)
  kept = {*steps[-keep_last:], *ranked(directory)[:keep_best]}
  for path in _steps(directory):
    step = int(path.name)
    if step <= steps[-1] and step not in kept:
      discard(directory, step)


def check_room(directory: Path, needed: int) -> None:
  """Raises StorageError where a step of so many bytes finds no room.

  A bucket has room.
  """
  if buckets.is_address(directory):
    return
  free = shutil.disk_usage(directory).free
  if free < needed:
    raise StorageError(
      f"{directory} has {free / 1e9:,.3f} GB of room, and a checkpoint takes "
      f"{needed / 1e9:,.3f}: make room or choose another --workdir, and run "
      "again."
    )


def clear(directory: Path) -> None:
  """Deletes what no save will finish any more; only under the lock."""
  with storage_errors.bucket_errors(directory):
    for path in directory.glob("*.orbax-*"):
      buckets.remove(path)


class Lock(NamedTuple):
  """A lock: this run alone writes."""

  check: Callable[[], None]  # Raises CheckpointError where it was lost.
  close: Callable[[], None]


def lock(directory: Path) -> Lock:
  """Creates and locks the folder, until it is closed.

  The lock ends with the process, however that ends. A bucket has none: there,
  the run that came last has it, and the one before is told so when it next
  wants to save. Raises CheckpointError where another process has the lock, or
  this one; ConfigError and StorageError where nothing can be written.
  """
  if buckets.is_address(directory):
    return _take_over(directory)
  try:
    directory.mkdir(parents=True, exist_ok=True)
    file = output_files.lock(directory / ".lock")
  except BlockingIOError as error:
    raise CheckpointError(
      f"{directory} is being written by another run, or was not closed by this "
      "one: wait until that ends, or choose another --workdir."
    ) from error
  except OSError as error:
    if error.errno in output_files.NO_LOCKS:
      return Lock(lambda: None, lambda: None)
    raise storage_errors.unwritable(directory, error) from error
  return Lock(lambda: None, file.close)


def _take_over(directory: Path) -> Lock:
  token = f"{socket.gethostname()} {os.getpid()} {os.urandom(8).hex()}\n"
  with storage_errors.bucket_errors(directory):
    (directory / ".lock").write_text(token)

  def check() -> None:
    found = (directory / ".lock").read_text()
    if found != token:
      raise CheckpointError(
        f"another run ({' '.join(found.split()[:2])}) has begun to write "
        f"{directory}: this one leaves it alone."
      )

  return Lock(check, lambda: None)
