"""Files that a verb is told to write: checked before the work that fills them.

What still goes wrong at its end, such as a full disk, is told in one line.
"""

import contextlib
import json
import os
import pathlib
import signal
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from maskedlm.core.errors import ConfigError, InteropError
from maskedlm.runtime import buckets, storage_errors


def check(
  path: str | os.PathLike, *, option: str, suffixes: Sequence[str] = ()
) -> None:
  """That a file can be written there, before anything slow begins.

  Args:
    path: of the file, new or not.
    option: what the errors call it.
    suffixes: of its name, one of these, in small letters; () = any.

  Raises:
    ConfigError: another suffix, no such folder, a folder of that name, no
      right to write.
  """
  path = pathlib.Path(path)
  if suffixes and path.suffix.lower() not in suffixes:
    raise ConfigError(
      f"{option}={path}: the name ends in {path.suffix!r}; expected "
      f"{' or '.join(suffixes)}."
    )
  if not path.parent.is_dir():
    raise ConfigError(f"{option}={path}: there is no folder {path.parent}.")
  if path.is_dir():
    raise ConfigError(f"{option}={path} is a folder; name a file.")
  path = path.resolve()
  # A new file takes the place of an old one; a device is written into.
  needed = {path.parent} if not path.exists() or path.is_file() else set()
  needed |= {path} if path.exists() else set()
  if not all(os.access(each, os.W_OK) for each in needed):
    raise ConfigError(f"{option}={path}: no right to write there.")


def check_folder(path: str | os.PathLike, *, option: str) -> None:
  """As `check`, of a folder, which need not be there yet.

  Raises:
    ConfigError: a file of that name, or of one above; no right to write.
  """
  path = pathlib.Path(path).absolute()
  there = next(each for each in (path, *path.parents) if each.exists())
  if not there.is_dir():
    raise ConfigError(f"{option}={path}: {there} is a file; name a folder.")
  if not os.access(there, os.W_OK):
    raise ConfigError(f"{option}={path}: no right to write there.")


def write(path: str | os.PathLike, text: str, *, option: str) -> None:
  """Writes a file whole; errors as of `writing`."""
  with writing(path, option=option):
    buckets.write_whole(pathlib.Path(path), text)


@contextlib.contextmanager
def writing(path: str | os.PathLike, *, option: str) -> Iterator[None]:
  """Within: an OSError is raised as what storage.told makes of it."""
  try:
    yield
  except OSError as error:
    raise storage_errors.told(
      f"{option}={os.fspath(path)} can't be written ({storage_errors.reason(error)})",
      error,
      mend="give another.",
      wait="make room, then run the same command again.",
    ) from error


@contextlib.contextmanager
def whole_folder(out: pathlib.Path) -> Iterator[pathlib.Path]:
  """An empty folder to write into, which becomes `out` if nothing is raised.

  Raises:
    InteropError: `out` is there already, and not empty; or can't be made.
    ConfigError: it is an address.
  """
  out = buckets.folder(out)
  if out.exists() and (not out.is_dir() or any(out.iterdir())):
    raise InteropError(f"--out={out} exists: give another, or remove it first.")
  try:
    out.parent.mkdir(parents=True, exist_ok=True)
    beside = tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent)
  except OSError as error:
    raise InteropError(f"--out={out}: {error.strerror}.") from None
  with beside, _stopped():
    # One within has the rights of any new folder, which `beside` has not.
    unfinished = pathlib.Path(beside.name, out.name)
    unfinished.mkdir()
    yield unfinished
    if out.exists():
      out.rmdir()
    unfinished.rename(out)


@contextlib.contextmanager
def _stopped() -> Iterator[None]:
  """Within: SIGTERM is an exception, after which nothing is left behind."""
  if threading.current_thread() is not threading.main_thread():
    yield  # There, nothing can be done about signals.
    return
  old = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
  try:
    yield
  finally:
    signal.signal(signal.SIGTERM, old)


def read_json(path: pathlib.Path) -> dict[str, Any]:
  """The object in a file; {} without one.

  Raises:
    InteropError: something else is in it.
  """
  if not path.is_file():
    return {}
  try:
    value = json.loads(path.read_text("utf-8"))
    if not isinstance(value, dict):
      raise ValueError("not an object")
  except ValueError as error:
    raise InteropError(
      f"{path} is not JSON ({error}); fetch it again."
    ) from None
  return value


def write_json(path: pathlib.Path, content: Any) -> None:
  """For people, too: indented, and as few escapes as can be."""
  text = json.dumps(content, indent=2, ensure_ascii=False)
  path.write_text(text + "\n", "utf-8")


def save_npz(path: str | pathlib.Path, **arrays: np.ndarray) -> None:
  """Writes all of them, or nothing.

  Raises:
    ConfigError, StorageError: it can't be written (storage.told).
  """
  path = pathlib.Path(path)
  made = path.with_name(f".{path.name}.partial")
  try:
    with made.open("wb") as file:
      np.savez(file, **arrays)
    made.replace(path)
  except OSError as error:
    raise storage_errors.unwritable(path, error) from error
  finally:
    made.unlink(missing_ok=True)


@contextlib.contextmanager
def open_npz(
  path: str | pathlib.Path, *, made_by: str
) -> Iterator[Mapping[str, np.ndarray]]:
  """Within: the arrays. That something is odd in them is told as made_by's.

  Raises:
    ConfigError: no such file, or another kind of file.
  """
  try:
    with np.load(path, allow_pickle=False) as file:
      yield file
  except OSError as error:
    raise ConfigError(f"{path}: {error.strerror or error}.") from None
  except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as e:
    raise ConfigError(
      f"{path} is no file of `{made_by}`, or a damaged one ({e}): make one."
    ) from None
