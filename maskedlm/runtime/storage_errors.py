"""Storage that fails: an error of one line, of one of two types.

What only the user can mend (a wrong name, a missing permission) is a
ConfigError and ends with 2. What may pass by itself (a bucket that doesn't
answer, a disk that is full) is a StorageError: it ends with 74, at which
launchers start the same command again.
"""

import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterator

from maskedlm.core.errors import ConfigError, StorageError

# Of the operating system, beside those that Python has types for; of HTTP.
_WRONG_NUMBERS = (errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP)
_WRONG_CODES = {"400", "401", "403", "404"}


def as_user_error(
  text: str, error: Exception, *, if_wrong: str, if_temporary: str
) -> ConfigError | StorageError:
  """What to raise for what a file system has raised, with the advice for it.

  Args:
    text: what can't be done, and why.
    error: what was raised.
    if_wrong: the advice where a name or a right is wrong.
    if_temporary: the advice where it may work another time.
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
    or str(error).startswith(("Forbidden", "Bad Request"))  # gcsfs has no type.
  )
  if wrong:
    return ConfigError(f"{text}: {if_wrong}")
  return StorageError(f"{text}: {if_temporary}")


def reason(error: Exception) -> str:
  """The cause in one line; TensorStore's message is a page that holds it."""
  code = re.search(r"os_error_code='(\d+)'", str(error))
  number = int(code[1]) if code else getattr(error, "errno", None)
  lines = str(error).splitlines() or [type(error).__name__]
  return os.strerror(number) if number else lines[0][:200]


def unreachable(
  path: str | os.PathLike, error: Exception
) -> ConfigError | StorageError:
  """Of an address or a folder that can't be listed, read or written."""
  return as_user_error(
    f"{os.fspath(path)} can't be reached ({type(error).__name__}: "
    f"{reason(error)})",
    error,
    if_wrong="check its spelling, and whether this machine's account may read "
    "and write it.",
    if_temporary="once it can, the same command goes on.",
  )


def unwritable(
  path: str | os.PathLike, error: Exception
) -> ConfigError | StorageError:
  """Of a folder or an address in which something would be kept."""
  return as_user_error(
    f"{os.fspath(path)} can't be written ({reason(error)})",
    error,
    if_wrong="choose another place, or make it writable.",
    if_temporary="make room or wait, then run the same command again.",
  )


@contextlib.contextmanager
def disk_errors(path: str | os.PathLike) -> Iterator[None]:
  """Within: that a disk is full, or takes no more, is told as `unwritable`.

  Of the file that was written, where the error names one; else of `path`.
  """
  try:
    yield
  except OSError as error:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
      raise
    raise unwritable(error.filename or path, error) from error


@contextlib.contextmanager
def raise_as(tell: Callable[[Exception], Exception]) -> Iterator[None]:
  """Within: what a file system raises is raised as tell(error).

  Not what has an exit code, and is told already; nor what JAX has raised: that
  is of a device, or of a host that has gone, and runtime.py tells it.
  """
  try:
    yield
  except Exception as error:  # gcsfs, TensorStore and Orbax raise many kinds.
    if hasattr(error, "exit_code") or _is_of_jax(error):
      raise
    raise tell(error) from error


def bucket_errors(path: str | os.PathLike) -> contextlib.AbstractContextManager:
  """Within: what a file system raises is told as `unreachable`."""
  return raise_as(lambda error: unreachable(path, error))


def _is_of_jax(error: BaseException | None) -> bool:
  import jax  # Slow to import.

  return error is not None and (
    isinstance(error, jax.errors.JaxRuntimeError)
    or _is_of_jax(error.__cause__ or error.__context__)
  )
