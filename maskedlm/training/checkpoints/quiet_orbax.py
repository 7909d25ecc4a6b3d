"""Orbax without its log: `from ...quiet_orbax import ocp`.

Orbax logs each save, and after a failed save the writes still running print
their tracebacks. Its errors are raised anyway, and reported in one line.
"""

import logging
import sys

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
