"""Saves a step's manifest, and compares the step's files with it.

The manifest lists the SHA-256 of each file of a step. `sha256sum -c
manifest.sha256` checks it by hand. One of the files is the record, JSON, which
has the number of the step: a folder that was renamed is found, too.

A path is a pathlib.Path, or an epath.Path for an address (runtime/buckets.py).
"""

import concurrent.futures
import errno
import hashlib
import json
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from maskedlm.core.errors import ConfigError
from maskedlm.core.parse_json import parse_json
from maskedlm.runtime import buckets, output_files, storage_errors

MANIFEST = "manifest.sha256"
_RECORD = "meta/metadata"


def _header(body: str) -> str:
  """Returns a comment for sha256sum, which reveals a truncated manifest."""
  return f"# {hashlib.sha256(body.encode()).hexdigest()}  the lines below"


def _write_manifest(path: Path, body: str) -> None:
  output_files.write_text(path / MANIFEST, f"{_header(body)}\n{body}")


def commit(directory: Path, record: dict) -> None:
  """Writes a step's record and its manifest, which makes it complete."""
  path = directory / str(record["step"])
  (path / _RECORD).parent.mkdir(exist_ok=True)
  output_files.write_text(path / _RECORD, json.dumps(record))
  names = buckets.list_files(path)
  with concurrent.futures.ThreadPoolExecutor() as pool:
    digests = pool.map(lambda name: output_files.sha256(path / name), names)
    lines = zip(digests, names, strict=True)
    body = "".join(f"{digest}  {name}\n" for digest, name in lines)
  _write_manifest(path, body)


def is_step(name: str) -> bool:
  """Returns whether a folder of this name is a step."""
  return name.isdecimal() and name == str(int(name))


def _read(path: Path, read: Callable[[Path], str]) -> str:
  """Returns read(path); in a bucket, only a missing file counts as damage.

  Raises:
    OSError: it is not a regular file, or can't be read.
    ConfigError, StorageError: the bucket can't be reached.
  """
  if not buckets.is_address(path):
    if stat.S_ISREG(path.stat().st_mode):
      return read(path)
    # Opening a named pipe would wait for a writer.
    raise OSError(errno.EINVAL, "not a regular file", str(path))
  try:
    return read(path)
  except (FileNotFoundError, UnicodeDecodeError):
    raise
  except Exception as error:  # gcsfs raises many types.
    raise storage_errors.unreachable(path, error) from error


def find_damage(path: Path, items: Sequence[str] = ("",)) -> str | None:
  """Checks a step's files against its manifest, and its name by its record.

  Args:
    items: prefixes of the files to check; by default all.

  Returns:
    The first problem found, or None.

  Raises:
    ConfigError, StorageError: a bucket can't be reached.
  """
  try:
    text = _read(path / MANIFEST, lambda file: file.read_text("utf-8"))
  except FileNotFoundError:
    return f"{MANIFEST} is missing"
  except OSError as error:
    return f"{MANIFEST}: {error.strerror}"
  except ConfigError:  # Of the bucket; it is a ValueError too.
    raise
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
  try:
    step = str(read_record(path)["step"])
  except OSError as error:
    return f"{_RECORD}: {error.strerror}"
  except ConfigError:
    raise
  except ValueError as error:
    return f"{_RECORD} is damaged: {error}"
  if is_step(path.name) and path.name != step:
    return f"it holds step {step}: was it renamed, or swapped with that?"
  return None


def read_record(path: Path) -> dict:
  """Returns the JSON that manager.py saved with a step.

  Raises:
    OSError: it can't be read.
    ValueError: it is something else.
  """
  record = parse_json(
    _read(path / _RECORD, lambda file: file.read_text("utf-8"))
  )
  known = {"step": int, "arrays": dict, "meta": dict}
  if not isinstance(record, dict) or "metric" not in record:
    raise ValueError("it is not the record of a step")
  for name, type_ in known.items():
    if not isinstance(record.get(name), type_):
      raise ValueError(f"{name} is {record.get(name)!r:.50}")
  return record


def find_record(path: Path) -> dict | None:
  """Returns the record of a step; None if it is not as its manifest says."""
  return None if find_damage(path, ("meta/",)) else read_record(path)


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
