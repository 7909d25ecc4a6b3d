"""Blames warnings of deprecation on the code of ours that called a library.

`stacklevel` says whom a warning is about; many calls of warnings.warn don't set
it, and seem to be about the library itself. The filters in pyproject.toml,
which go by modules, would then leave our own calls alone.
"""

import pathlib
import sys
import warnings

ROOT = pathlib.Path(__file__).parents[2]
KINDS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
_GLUE = ("contextlib", "functools")  # Between a library's function and us.
_warn = warnings.warn


def install():
  """Replaces warnings.warn; call it before libraries are imported."""
  warnings.warn = warn


def warn(message, category=None, stacklevel=1, source=None, **more):
  """As warnings.warn, but blames our code if it called the library."""
  is_made = isinstance(message, Warning)
  kind = type(message) if is_made else category or UserWarning
  caller = _our_caller(sys._getframe(1)) if issubclass(kind, KINDS) else None
  if caller is None:
    _warn(message, category, stacklevel + 1, source, **more)
    return
  path = caller.f_code.co_filename
  warnings.warn_explicit(
    message,
    kind,
    path,
    caller.f_lineno,
    module=".".join(pathlib.Path(path).relative_to(ROOT).with_suffix("").parts),
    registry=caller.f_globals.setdefault("__warningregistry__", {}),
    source=source,
  )


def _our_caller(frame):
  """Returns the frame that called the library of `frame`, if it is ours."""
  library = _package(frame)
  while frame and _package(frame) in (library, *_GLUE):
    frame = frame.f_back
  path = frame.f_code.co_filename if frame else ""
  is_ours = path.startswith(f"{ROOT}/") and "/site-packages/" not in path
  return frame if is_ours else None


def _package(frame):
  return frame.f_globals.get("__name__", "").partition(".")[0]
