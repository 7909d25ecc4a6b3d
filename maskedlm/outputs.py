"""Files that a verb is told to write: checked before the work that fills them.

What still goes wrong at its end, such as a full disk, is told in one line.
"""

import contextlib
import os
import pathlib
from collections.abc import Iterator, Sequence

from maskedlm import remote, storage
from maskedlm.config import ConfigError


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
    remote.write_whole(pathlib.Path(path), text)


@contextlib.contextmanager
def writing(path: str | os.PathLike, *, option: str) -> Iterator[None]:
  """Within: an OSError is raised as what storage.told makes of it."""
  try:
    yield
  except OSError as error:
    raise storage.told(
      f"{option}={os.fspath(path)} can't be written ({storage.reason(error)})",
      error,
      mend="give another.",
      wait="make room, then run the same command again.",
    ) from error
