"""Directories that are there whole, or not at all."""

import contextlib
import pathlib
import shutil
from collections.abc import Iterator

from maskedlm.interop.errors import InteropError


@contextlib.contextmanager
def whole(out: pathlib.Path) -> Iterator[pathlib.Path]:
  """An empty folder to write into, which becomes `out` if nothing is raised.

  Raises:
    InteropError: `out` is there already, and not empty.
  """
  out = out.absolute()
  if out.exists() and (not out.is_dir() or any(out.iterdir())):
    raise InteropError(f"--out={out} exists: give another, or remove it first.")
  unfinished = out.with_name(f"{out.name}.tmp")
  shutil.rmtree(unfinished, ignore_errors=True)
  try:
    unfinished.mkdir(parents=True)
  except OSError as error:
    raise InteropError(f"--out={out}: {error.strerror}.") from None
  try:
    yield unfinished
    if out.exists():
      out.rmdir()
    unfinished.rename(out)
  finally:
    shutil.rmtree(unfinished, ignore_errors=True)
