"""Refuses rows and sentences that break their format, or leaves them out.

Readers give the error of a row to `refuse`, which raises it. Within `left_out`
the row is counted instead, and the reader goes on without it.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.runtime import console

_handler: contextvars.ContextVar = contextvars.ContextVar("bad", default=None)


class TableError(DataError):
  """An error that every row of a table has, such as a missing column."""


def refuse(error: DataError) -> None:
  """Raises the error of a row, or counts the row, which is to be left out."""
  if isinstance(error, TableError) or not (handle := _handler.get()):
    raise error
  handle(error)


def map_rows(make: Callable[[Any], Any], items: Iterable) -> Iterator[Any]:
  """Yields make(item) of each item; refuses those that raise DataError."""
  for item in items:
    try:
      row = make(item)
    except DataError as error:
      refuse(error)
    else:
      yield row


@contextlib.contextmanager
def left_out(source: str, *, skip: bool) -> Iterator[None]:
  """Leaves bad rows out and counts them; without `skip`, names the option."""
  bad: list[DataError] = []

  def handle(error: DataError) -> None:
    bad.append(error)
    if not skip:
      remedy = "--config.data.skip_bad=True leaves such rows out."
      raise DataError(f"{error} {remedy}") from None

  token = _handler.set(handle)
  try:
    yield
  finally:
    _handler.reset(token)
  if bad:
    count = counted(len(bad), "bad row")
    console.log(f"{source}: {count} left out: {bad[0]}")
