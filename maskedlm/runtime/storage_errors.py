"""Turns I/O failures into one-line errors of two types.

They are ConfigError (exit code 2) if the user must act: a wrong name, a missing
permission; and StorageError (74) if a retry may help: a bucket that doesn't
answer, a full disk. Launchers restart the same command after 74.
"""

import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterator

from maskedlm.core.errors import ConfigError, StorageError

# errno values without an exception type in Python; HTTP status codes.
_WRONG_NUMBERS = (errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP)
_WRONG_CODES = {"400", "401", "403", "404"}


def as_user_error(
  text: str, error: Exception, *, if_wrong: str, if_temporary: str
) -> ConfigError | StorageError:
  """Returns the error to raise instead of a file system's.

  Args:
    text: what failed, and why.
    error: the file system's error.
    if_wrong: the advice if a name or a permission is wrong.
    if_temporary: the advice if a retry may help.
  """
  wrong = (
    isinstance(
      error,
      FileNotFoundError
      | FileExistsError
      | NotADirectoryError
      | IsADirectoryError
      | PermissionError,
    )
    or getattr(error, "errno", None) in _WRONG_NUMBERS
    or str(getattr(error, "code", None)) in _WRONG_CODES
    or str(error).startswith(("Forbidden", "Bad Request"))  # Untyped in gcsfs.
  )
  if wrong:
    return ConfigError(f"{text}: {if_wrong}")
  return StorageError(f"{text}: {if_temporary}")


def reason(error: Exception) -> str:
  """Returns the cause in one line; TensorStore's messages fill a page."""
  code = re.search(r"os_error_code='(\d+)'", str(error))
  number = int(code[1]) if code else getattr(error, "errno", None)
  lines = str(error).splitlines() or [type(error).__name__]
  return os.strerror(number) if number else lines[0][:200]


def unreachable(
  path: str | os.PathLike, error: Exception
) -> ConfigError | StorageError:
  """Returns the error for a place that can't be listed, read or written."""
  return as_user_error(
    f"{os.fspath(path)} can't be reached ({type(error).__name__}: "
    f"{reason(error)})",
    error,
    if_wrong="check its spelling, and whether this machine's account may read "
    "and write it.",
    if_temporary="run the same command again when it can; it continues.",
  )


def unwritable(
  path: str | os.PathLike, error: Exception
) -> ConfigError | StorageError:
  """Returns the error for an output that can't be written."""
  return as_user_error(
    f"{os.fspath(path)} can't be written ({reason(error)})",
    error,
    if_wrong="choose another place, or make it writable.",
    if_temporary="make room or wait, then run the same command again.",
  )


@contextlib.contextmanager
def disk_errors(path: str | os.PathLike) -> Iterator[None]:
  """Raises errors of full, over-quota and read-only disks as `unwritable`.

  The message names the file that was written, if the error has it, or `path`.
  """
  try:
    yield
  except OSError as error:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
      raise
    raise unwritable(error.filename or path, error) from error


@contextlib.contextmanager
def raise_as(
  make_error: Callable[[Exception], Exception],
) -> Iterator[None]:
  """Raises a file system's error within the block as make_error(error).

  Errors with an exit code pass unchanged, and so do JAX's: they come from a
  device or a lost host, and startup.py reports them.
  """
  try:
    yield
  except Exception as error:  # gcsfs, TensorStore and Orbax raise many kinds.
    if hasattr(error, "exit_code") or _is_of_jax(error):
      raise
    raise make_error(error) from error


def bucket_errors(path: str | os.PathLike) -> contextlib.AbstractContextManager:
  """Raises a file system's error within the block as `unreachable`."""
  return raise_as(lambda error: unreachable(path, error))


def _is_of_jax(error: BaseException | None) -> bool:
  import jax  # Slow to import.

  return error is not None and (
    isinstance(error, jax.errors.JaxRuntimeError)
    or _is_of_jax(error.__cause__ or error.__context__)
  )
