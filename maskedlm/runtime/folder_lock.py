"""The lock on a folder of checkpoints, so that only one run writes to it."""

import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from maskedlm.core.errors import CheckpointError
from maskedlm.runtime import buckets, output_files, storage_errors


class Lock(NamedTuple):
  """The right to write to a folder, which one run has at a time."""

  check: Callable[[], None]  # Raises CheckpointError if it was lost.
  close: Callable[[], None]


def lock_folder(directory: Path) -> Lock:
  """Creates the folder and locks it until the Lock is closed.

  The lock ends with the process, however that ends. Some file systems have no
  locks, or not between hosts, and buckets have none. So the run that started
  last leaves its token, and an earlier one fails at its next save.

  Raises:
    CheckpointError: another process holds the lock, or this one does already.
    ConfigError, StorageError: nothing can be written there.
  """
  if buckets.is_address(directory):
    with storage_errors.bucket_errors(directory):
      return Lock(_leave_token(directory), lambda: None)
  try:
    directory.mkdir(parents=True, exist_ok=True)
    file = output_files.lock(directory / ".lock")
    try:
      return Lock(_leave_token(directory), file.close)
    except OSError:
      file.close()
      raise
  except BlockingIOError as error:
    raise CheckpointError(
      f"{directory} is being written by another run, or was not closed by this "
      "one: wait until that run ends, or choose another --workdir."
    ) from error
  except OSError as error:
    where = error.filename or directory
    raise storage_errors.unwritable(where, error) from error


def _leave_token(directory: Path) -> Callable[[], None]:
  """Writes who holds the folder; returns a check that this is still so."""
  token = f"{socket.gethostname()} {os.getpid()} {os.urandom(8).hex()}\n"
  (directory / ".lock").write_text(token)

  def check() -> None:
    holder = token
    with contextlib.suppress(FileNotFoundError):  # Removed by hand.
      holder = (directory / ".lock").read_text()
    if holder != token:
      raise CheckpointError(
        f"another run ({' '.join(holder.split()[:2])}) has started to write to "
        f"{directory}, so this one must not: stop one of them."
      )

  return check
