"""Opens regular files for reading; refuses named pipes, devices and folders."""

import errno
import os
import stat
from typing import IO

# What `<(command)` of a shell and a redirection name: opened already.
_OPEN = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


def open_file(path: str | os.PathLike) -> IO[bytes]:
  """Opens a file to read it; raises OSError for anything else.

  Opening a named pipe would wait for a writer. A pipe that the shell has opened
  is read.
  """
  if os.fspath(path).startswith(_OPEN):
    return open(path, "rb")
  file = open(  # noqa: SIM115
    path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)
  )
  if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
    return file
  file.close()
  raise OSError(errno.EINVAL, "Not a regular file", os.fspath(path))
