"""Turns I/O failures into one-line errors of two types.

They are ConfigError (exit code 2) if the user must act: a wrong name, a missing
permission, what a file system can't do; and StorageError (74) if a retry may
help: a bucket that doesn't answer, a full disk. Launchers restart the same
command after 74.
"""

import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterator

from maskedlm.core.errors import ConfigError, StorageError

# errno values after which a retry may help; no others.
_TEMPORARY = {
  *(errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.ENFILE, errno.EMFILE),
  *(errno.EIO, errno.ESTALE, errno.EREMOTEIO, errno.ENOLCK, errno.EDEADLK),
  *(errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.ETXTBSY, errno.EPIPE),
  *(errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH),
  *(errno.ENETDOWN, errno.ENETUNREACH, errno.ENETRESET, errno.ENOTCONN),
  *(errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.ESHUTDOWN),
}
_REMEDIES = {
  **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "make room"),
  **dict.fromkeys(
    (errno.EMFILE, errno.ENFILE), "allow more open files (ulimit -n 65536)"
  ),
  **dict.fromkeys(
    (errno.ECONNREFUSED, errno.EHOSTDOWN, errno.EHOSTUNREACH),
    "check that its server runs",
  ),
  errno.ENOMEM: "free memory",
}
_WRONG_CODES = {"400", "401", "403", "404"}  # Of HTTP.
# Of Google's library, and of Hugging Face's.
_WRONG_TYPES = ("DefaultCredentialsError", "OfflineModeIsEnabled")
# Beginnings of messages: of gcsfs, which has no types for them, of TensorStore.
_WRONG_TEXTS = (
  *("Forbidden", "Bad Request"),
  *("INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED"),
  *("UNAUTHENTICATED", "FAILED_PRECONDITION", "UNIMPLEMENTED"),
)


def as_user_error(
  text: str,
  error: Exception,
  *,
  if_wrong: str,
  if_temporary: str = "then run the same command again.",
) -> ConfigError | StorageError:
  """Returns the error to raise instead of a file system's.

  Args:
    text: what failed, and why.
    if_wrong: the advice if a name or a permission is wrong.
    if_temporary: the rest of the advice if a retry may help, which begins with
      what helps against the error.
  """
  if may_pass(error):
    first = _REMEDIES.get(_number(error) or 0, "wait")
    return StorageError(f"{text}: {first}, {if_temporary}")
  return ConfigError(f"{text}: {if_wrong}")


def may_pass(error: Exception) -> bool:
  """Returns whether a retry may help, as far as the error says."""
  number = _number(error)
  if number is not None:
    return number in _TEMPORARY
  return not (
    isinstance(
      error,
      FileNotFoundError
      | FileExistsError
      | NotADirectoryError
      | IsADirectoryError
      | PermissionError
      | TypeError
      | NotImplementedError
      | UnicodeError,
    )
    or str(_http_code(error)) in _WRONG_CODES
    or str(error).startswith(_WRONG_TEXTS)
    or type(error).__name__ in _WRONG_TYPES
  )


def _http_code(error: Exception) -> int | str | None:
  # aiohttp has it as `status`, and warns of its `code`.
  response = getattr(error, "response", None)
  return (
    getattr(error, "status", None)
    or getattr(error, "code", None)
    or getattr(response, "status_code", None)  # Of huggingface_hub.
  )


def _number(error: Exception) -> int | None:
  """Returns the errno of an error, which TensorStore has in its message."""
  code = re.search(r"os_error_code='(\d+)'", str(error))
  return int(code[1]) if code else getattr(error, "errno", None)


def reason(error: Exception) -> str:
  """Returns the cause in one line; TensorStore's messages fill a page."""
  number = _number(error)
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
    if_temporary="then run the same command again; it continues.",
  )


def raise_if_temporary(path: str | os.PathLike, error: Exception) -> None:
  """Raises StorageError if reading an input failed in a way that may pass."""
  if _number(error) in _TEMPORARY:
    raise as_user_error(
      f"{os.fspath(path)} can't be read ({reason(error)})",
      error,
      if_wrong="",
    ) from error


def unwritable(
  path: str | os.PathLike, error: Exception
) -> ConfigError | StorageError:
  """Returns the error for an output that can't be written.

  Raises:
    BrokenPipeError: it is one: nobody reads stdout, and no file is at fault.
  """
  if isinstance(error, BrokenPipeError):
    raise error
  return as_user_error(
    f"{os.fspath(path)} can't be written ({reason(error)})",
    error,
    if_wrong="choose another place, or make it writable.",
  )


# Those of network disks are among the temporary ones.
_OF_DISKS = (_TEMPORARY - {errno.EPIPE}) | {
  *(errno.EROFS, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.EFBIG),
  *(errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM),
}


def unusable(
  error: OSError, *, place: str = ""
) -> ConfigError | StorageError | None:
  """Returns the error for an OSError whose source is unknown.

  Args:
    error: raised by a disk or for a name; for any other, the result is None.
    place: what was written, if that is known: then any error has a result.
  """
  if isinstance(error, PermissionError) and error.filename is not None:
    return ConfigError(
      f"{error.filename}: {error.strerror}; give another path, or ask its "
      "owner for access."
    )
  if not place and error.errno not in _OF_DISKS:
    return None
  return as_user_error(
    f"{place or error.filename or 'stdout or a file'} can't be written or "
    f"read ({reason(error)})",
    error,
    if_wrong="choose another place, or make it usable.",
  )


@contextlib.contextmanager
def disk_errors(path: str | os.PathLike) -> Iterator[None]:
  """Raises errors of full and read-only disks and wrong names as `unwritable`.

  The message names the file that was written, if the error has it, or `path`.
  """
  try:
    yield
  except OSError as error:
    if error.errno not in _OF_DISKS:
      raise
    raise unwritable(error.filename or path, error) from error


@contextlib.contextmanager
def raise_as(make_error: Callable[[Exception], Exception]) -> Iterator[None]:
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
    # Orbax's, whose cause asyncio drops.
    or (isinstance(error, TimeoutError) and "at barrier" in str(error))
    or _is_of_jax(error.__cause__ or error.__context__)
  )
