"""Makes calls to the file system fail in a forked process."""

import builtins
import errno
import functools
import io
import os
import pathlib
import random
from collections.abc import Callable

ERRORS = (
  errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES,
  errno.ESTALE, errno.ENOLCK, errno.ETIMEDOUT,
)  # fmt: skip
CALLS = (
  "open", "mkdir", "replace", "rename", "unlink", "rmdir", "fsync", "scandir",
  "listdir", "stat",
)  # fmt: skip


def failing_call(
  folder: pathlib.Path, rng: random.Random
) -> Callable[[], None]:
  """Returns a function after which some calls on paths in `folder` fail.

  Args:
    folder: paths outside are left alone.
    rng: draws the error, which calls fail, and whether once or for good.
  """
  number = rng.choice(ERRORS)
  names = {rng.choice(CALLS)}
  first = rng.randrange(12)
  last = rng.choice([first, 10**9])
  count = 0

  def fails(path) -> bool:
    nonlocal count
    if isinstance(path, int):
      try:
        path = os.readlink(f"/proc/self/fd/{path}")
      except OSError:
        return False
    try:
      inside = os.fspath(path).startswith(f"{folder}/")
    except (TypeError, AttributeError):
      return False
    if not inside or pathlib.Path(os.fspath(path)).name.startswith("log"):
      return False
    count += 1
    return first <= count - 1 <= last

  def wrap(call):
    @functools.wraps(call)
    def failing(path=".", *args, **kwargs):
      if fails(path):
        raise OSError(number, os.strerror(number), str(path))
      return call(path, *args, **kwargs)

    return failing

  def inject():
    for name in names:
      setattr(os, name, wrap(getattr(os, name)))
    if "open" in names:
      builtins.open = io.open = wrap(io.open)

  return inject
