"""Directories that are there whole, or not at all."""

import contextlib
import pathlib
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator

from maskedlm import remote
from maskedlm.interop.errors import InteropError


@contextlib.contextmanager
def whole(out: pathlib.Path) -> Iterator[pathlib.Path]:
  """An empty folder to write into, which becomes `out` if nothing is raised.

  Raises:
    InteropError: `out` is there already, and not empty; or can't be made.
    ConfigError: it is an address.
  """
  out = remote.folder(out)
  if out.exists() and (not out.is_dir() or any(out.iterdir())):
    raise InteropError(f"--out={out} exists: give another, or remove it first.")
  try:
    out.parent.mkdir(parents=True, exist_ok=True)
    beside = tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent)
  except OSError as error:
    raise InteropError(f"--out={out}: {error.strerror}.") from None
  with beside, _stopped():
    # One within has the rights of any new folder, which `beside` has not.
    unfinished = pathlib.Path(beside.name, out.name)
    unfinished.mkdir()
    yield unfinished
    if out.exists():
      out.rmdir()
    unfinished.rename(out)


@contextlib.contextmanager
def _stopped() -> Iterator[None]:
  """Within: SIGTERM is an exception, after which nothing is left behind."""
  if threading.current_thread() is not threading.main_thread():
    yield  # There, nothing can be done about signals.
    return
  old = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
  try:
    yield
  finally:
    signal.signal(signal.SIGTERM, old)
