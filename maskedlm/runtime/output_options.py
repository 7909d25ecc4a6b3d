"""Checks options that name an output, such as --out, before the work starts.

Later failures to write, such as a full disk, are raised as one-line errors that
name the option.
"""

import contextlib
import os
import pathlib
import signal
import sys
import threading
from collections.abc import Iterator, Sequence

from maskedlm.core.errors import ConfigError, InteropError
from maskedlm.runtime import buckets, output_files, storage_errors


def check_file(
  path: str | os.PathLike, *, option: str, suffixes: Sequence[str] = ()
) -> None:
  """Checks that a file can be written, before anything slow begins.

  Args:
    path: the file, new or existing.
    option: its name in error messages.
    suffixes: those allowed, in lower case, such as ".npz"; () = any.

  Raises:
    ConfigError: the suffix is not allowed, there is no such folder, the path is
      a folder, or there is no permission to write.
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
  path = pathlib.Path(os.path.realpath(path))
  # A new file replaces an old one; a device is written to directly.
  needed = {path.parent} if not path.exists() or path.is_file() else set()
  needed |= {path} if path.exists() else set()
  if not all(os.access(place, os.W_OK) for place in needed):
    raise ConfigError(f"{option}={path}: permission denied.")


def check_folder(path: str | os.PathLike, *, option: str) -> None:
  """Checks that files can be written in a folder, which may not exist yet.

  Raises:
    ConfigError: it or one of its parents is a file, or there is no permission
      to write.
  """
  path = pathlib.Path(path).absolute()
  existing = next(place for place in (path, *path.parents) if place.exists())
  if not existing.is_dir():
    raise ConfigError(f"{option}={path}: {existing} is a file; name a folder.")
  if not os.access(existing, os.W_OK):
    raise ConfigError(f"{option}={path}: permission denied.")


def write_text(path: str | os.PathLike, text: str, *, option: str) -> None:
  """Writes a whole file; raises as `named_errors` does."""
  with named_errors(path, option=option):
    output_files.write_text(path, text)


@contextlib.contextmanager
def named_errors(path: str | os.PathLike, *, option: str) -> Iterator[None]:
  """Raises an OSError within the block as one line that names the option.

  Raises:
    ConfigError: the path is wrong.
    StorageError: a retry may help, as after a full disk.
  """
  try:
    yield
  except OSError as error:
    cause = storage_errors.reason(error)
    raise storage_errors.as_user_error(
      f"{option}={os.fspath(path)} can't be written ({cause})",
      error,
      if_wrong="give another path.",
    ) from error


def check_new_folder(out: str | os.PathLike) -> pathlib.Path:
  """Returns the absolute path of --out; raises as new_folder does."""
  out = buckets.folder(out)
  if output_files.is_here(out):
    raise InteropError(
      f"--out={out} is the current folder, or contains it, and would be "
      "replaced: give the name of a new folder."
    )
  if out.exists() and (not out.is_dir() or any(out.iterdir())):
    raise InteropError(f"--out={out} exists: give another, or remove it first.")
  return out


@contextlib.contextmanager
def new_folder(out: pathlib.Path) -> Iterator[pathlib.Path]:
  """Makes a folder to write into, which becomes --out if nothing is raised.

  Raises:
    InteropError: `out` exists and is not empty.
    ConfigError: `out` is an address, or it can't be written.
    StorageError: it can't be written now, as its disk is full.
  """
  out = check_new_folder(out)
  with contextlib.ExitStack() as stack:
    stack.enter_context(_sigterm_raises())
    stack.enter_context(storage_errors.disk_errors(out))
    with named_errors(out, option="--out"):
      folder = stack.enter_context(output_files.whole_folder(out))
    yield folder


@contextlib.contextmanager
def _sigterm_raises() -> Iterator[None]:
  """Makes SIGTERM raise SystemExit, so that unfinished files are removed."""
  if threading.current_thread() is not threading.main_thread():
    yield  # Only the main thread can set a signal's handler.
    return

  def leave(number, frame):
    del frame
    signal.signal(number, signal.SIG_IGN)  # Nothing interrupts the removal.
    sys.exit(128 + number)

  old = signal.signal(signal.SIGTERM, leave)
  try:
    yield
  finally:
    signal.signal(signal.SIGTERM, old)
