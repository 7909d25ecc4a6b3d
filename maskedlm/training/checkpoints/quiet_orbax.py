"""Orbax without its log, for any path: `from ...quiet_orbax import ocp`.

Orbax logs each save, and after a failed save the writes still running print
their tracebacks. Its errors are raised anyway, and reported in one line.
"""

import functools
import glob
import logging
import os
import sys

from etils import epath

try:
  from orbax.checkpoint import v1 as ocp
except ImportError:  # From 1.0.0 on, the package itself has this interface.
  import orbax.checkpoint as ocp

__all__ = ("ocp",)


def _not_orbax(record: logging.LogRecord) -> bool:
  return "orbax" not in record.pathname + record.getMessage()


def _not_closed_loop(unraisable, report=sys.unraisablehook) -> None:
  if str(unraisable.exc_value) != "Event loop is closed":
    report(unraisable)


logging.getLogger("absl").addFilter(_not_orbax)
logging.getLogger("asyncio").addFilter(_not_orbax)
sys.unraisablehook = _not_closed_loop

_Path = type(epath.Path("."))


@functools.wraps(_Path.glob)
def _glob(self, pattern, glob_pattern=_Path.glob):
  return glob_pattern(_Path(glob.escape(os.fspath(self))), pattern)


# etils takes the folder's own name for a part of the pattern: in "a[1]"
# Orbax finds none of the files that it has to merge, and says that it saved.
_Path.glob = _glob
