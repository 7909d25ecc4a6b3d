"""Writes files and folders atomically; also locks, hashes, cache directories.

OSErrors are raised as they are unless a docstring lists other errors;
storage_errors.py turns them into one-line errors. Paths may be strings.
"""

import contextlib
import errno
import fcntl
import functools
import glob
import hashlib
import lzma
import os
import pathlib
import struct
import tokenize
import uuid
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, TypeVar

from maskedlm.core.errors import ConfigError
from maskedlm.core.measured import to_json
from maskedlm.core.open_file import open_file
from maskedlm.core.parse_json import parse_json
from maskedlm.runtime import buckets, console, storage_errors

if TYPE_CHECKING:
  import numpy as np

T = TypeVar("T")
# errno of flock on file systems without locks, such as Lustre and some NFS.
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


# Files and folders


@contextlib.contextmanager
def whole_file(path: str | os.PathLike) -> Iterator[IO[bytes]]:
  """Opens a new binary file, which replaces `path` if nothing is raised.

  Missing parent folders are created. Until it is whole, the file has a random
  name in the same folder, at which nothing that exists is opened; what killed
  processes left of it is removed. Several processes may write the same path:
  the last one to finish wins. A link at `path` is followed; a device such as
  /dev/stdout is written to directly.
  """
  path = pathlib.Path(os.path.realpath(path))  # resolve() fails for a loop.
  if path.exists() and not path.is_file():
    with path.open("wb") as file:
      yield file
    return
  path.parent.mkdir(parents=True, exist_ok=True)
  with _unfinished(path, lambda new: new.open("xb")) as (unfinished, file):
    try:
      yield file
      sync(file)
    finally:
      file.close()
    unfinished.replace(path)


@contextlib.contextmanager
def whole_folder(path: str | os.PathLike) -> Iterator[pathlib.Path]:
  """Makes a new folder, which becomes `path` if nothing is raised.

  If a folder with files in it is at `path` by then, that one stays and the new
  one is removed. What killed processes left is removed as by `whole_file`.
  """
  path = pathlib.Path(path)
  path.parent.mkdir(parents=True, exist_ok=True)
  with _unfinished(path, pathlib.Path.mkdir) as (unfinished, _):
    yield unfinished
    try:
      unfinished.rename(path)
    except OSError as error:
      if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
        raise


@contextlib.contextmanager
def _unfinished(
  path: pathlib.Path, make: Callable[[pathlib.Path], T]
) -> Iterator[tuple[pathlib.Path, T]]:
  """Yields (a new path beside another, make(it)); removes what is there after.

  It is locked meanwhile, so that what a killed process left can be told.
  """
  name = path.name[:32]  # Names have at most 255 bytes.
  clear_unfinished(path.parent, glob.escape(name))
  while True:
    new = path.with_name(f".{name}.{uuid.uuid4().hex}")
    result = make(new)
    try:
      with _locked(new, fcntl.LOCK_EX):
        if not new.exists():  # Taken for one that was left, before the lock.
          continue
        yield new, result
        return
    finally:
      buckets.remove(new)  # It is no more, if all went well.


def clear_unfinished(folder: str | os.PathLike, name: str = "*") -> None:
  """Removes what killed processes left of files and folders in a folder.

  Where the file system has no locks, it stays. The name is a pattern of glob.
  """
  for path in pathlib.Path(folder).glob(f".{name}.{'[0-9a-f]' * 32}"):
    held = _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with contextlib.suppress(OSError), held as is_free:
      if is_free:
        buckets.remove(path)


@contextlib.contextmanager
def _locked(path: pathlib.Path, how: int) -> Iterator[bool]:
  """Locks a file or a folder; yields whether that worked."""
  file = _open_no_link(path, os.O_RDONLY)
  try:
    is_locked = False
    with contextlib.suppress(OSError):  # Held by another, or without locks.
      fcntl.flock(file, how)
      is_locked = True
    yield is_locked
  finally:
    with contextlib.suppress(OSError):  # Nothing was written by it.
      os.close(file)


@contextlib.contextmanager
def folder(path: str | os.PathLike) -> Iterator[pathlib.Path]:
  """Makes a folder if there is none; removes it again if the block raises.

  Files that the block leaves in it, and a folder that was there, stay.
  """
  path = pathlib.Path(path)
  is_new = not path.exists()
  path.mkdir(parents=True, exist_ok=True)
  try:
    yield path
  except BaseException:
    if is_new:
      with contextlib.suppress(OSError):
        path.rmdir()
    raise


def sync(file: IO) -> None:
  """Flushes a file to disk: after a rename, a power cut must not lose it."""
  file.flush()
  os.fsync(file.fileno())


# Bytes, text, JSON and NumPy arrays


def write_bytes(path: str | os.PathLike, content: bytes) -> None:
  """Writes a whole file."""
  with whole_file(path) as file:
    file.write(content)


def write_text(path: str | os.PathLike, text: str) -> None:
  """Writes a whole file in UTF-8, at a path or an address."""
  if buckets.is_address(path):
    # An object in a bucket is replaced atomically.
    buckets.origin(path).write_text(text)
    return
  write_bytes(path, text.encode())


def write_json(path: str | os.PathLike, content: Any) -> None:
  """Writes indented JSON; numbers that are not finite become null."""
  write_text(path, to_json(content, indent=2) + "\n")


def read_object(path: pathlib.Path) -> dict[str, Any]:
  """Returns the JSON object in a file; {} if there is none that is good."""
  try:
    value = parse_json(path.read_text("utf-8"))
  except (OSError, ValueError):
    return {}
  return value if isinstance(value, dict) else {}


def read_result(workdir: pathlib.Path) -> dict[str, Any]:
  """Returns the result.json of a workdir; {} if there is none that is good."""
  return read_object(workdir / "result.json")


def save_npz(path: str | os.PathLike, **arrays: "np.ndarray") -> None:
  """Writes arrays to one .npz file.

  Raises:
    ConfigError, StorageError: the file can't be written.
  """
  import numpy as np  # Not loaded by `maskedlm VERB --help`.

  try:
    with whole_file(path) as file:
      np.savez(file, allow_pickle=False, **arrays)
  except OSError as error:
    raise storage_errors.unwritable(path, error) from error


@contextlib.contextmanager
def open_npz(
  path: str | os.PathLike, *, made_by: str
) -> Iterator[Mapping[str, "np.ndarray"]]:
  """Opens an .npz file that the command `made_by` wrote.

  Raises:
    ConfigError: there is no such file, or reading it failed within the block.
  """
  import numpy as np

  try:
    with open_file(path) as opened, np.load(opened) as file:
      yield file
  except OSError as error:
    storage_errors.raise_if_temporary(path, error)
    raise ConfigError(f"{path}: {error.strerror or error}.") from None
  except NPZ_ERRORS as error:
    if hasattr(error, "exit_code"):
      raise
    raise ConfigError(
      f"{path} is damaged or not written by `{made_by}` ({error}): write it "
      "again."
    ) from None


# What reading a file that is not an .npz raises, beside OSError.
NPZ_ERRORS = (
  *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError),
  *(EOFError, RuntimeError, MemoryError, SyntaxError, tokenize.TokenError),
  *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
)


def array(
  file: Mapping[str, "np.ndarray"], name: str, dtype: str, *shape: int
) -> "np.ndarray":
  """Returns an array of an open .npz; -1 in its shape is any number.

  Raises:
    ValueError, KeyError: it has another type or shape, or isn't there.
  """
  value = file[name]
  fits = value.ndim == len(shape) and all(
    want in (-1, n) for want, n in zip(shape, value.shape, strict=True)
  )
  if value.dtype != dtype or not fits:
    raise ValueError(f"{name} is {value.dtype}{list(value.shape)}")
  return value


# Locks, hashes, caches


def lock(
  path: str | os.PathLike, *, on_wait: Callable[[], None] | None = None
) -> IO:
  """Opens and locks a file until it is closed, or the process ends.

  Where the file system has no locks, the file is only opened, and a line says
  so, once. A link at the path is not followed: its file could be someone
  else's.

  Args:
    path: the file; it is created if it does not exist.
    on_wait: called before waiting for another process that holds the lock;
      None = don't wait.

  Raises:
    BlockingIOError: another process holds the lock, and on_wait is None.
    OSError: the file can't be opened or locked.
  """
  file = open(path, "ab", opener=_open_no_link)  # noqa: SIM115
  try:
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      if on_wait is None:
        raise
      on_wait()
      fcntl.flock(file, fcntl.LOCK_EX)
  except OSError as error:
    if error.errno not in _NO_LOCKS:
      file.close()
      raise
    warn_of_no_locks(error.strerror)
  return file


@functools.cache  # Once, whatever is locked.
def warn_of_no_locks(reason: str) -> None:
  console.warn(
    f"warning: the file system has no locks ({reason}): two commands that "
    "write the same folder or cache at once are not kept apart; start one only."
  )


def _open_no_link(path: str | os.PathLike, flags: int) -> int:
  # A FIFO without a reader is an error rather than a wait.
  return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def sha256(path: pathlib.Path) -> str:
  """Returns a file's SHA-256 in hex."""
  with path.open("rb") as file:
    return hashlib.file_digest(file, "sha256").hexdigest()


def cache_dir(name: str) -> pathlib.Path:
  """Returns the user's cache directory of that name; it may not exist yet.

  Raises:
    ConfigError: the user has no home folder, as in some containers.
  """
  root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
  if root.startswith("~"):
    raise ConfigError(
      "this user has no home folder for a cache: set HOME or XDG_CACHE_HOME to "
      "a folder that can be written."
    )
  return pathlib.Path(root, "maskedlm", name)


def is_here(path: str | os.PathLike) -> bool:
  """Returns whether a path is the current folder or contains it."""
  return pathlib.Path.cwd().is_relative_to(os.path.realpath(path))
