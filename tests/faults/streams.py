"""Closes, fills or breaks the standard streams of a forked process."""

import os
import random
import sys
from collections.abc import Callable

_NAMES = ("stdin", "stdout", "stderr")


def discard() -> None:
  """Sends stdout and stderr to nowhere."""
  for number in (1, 2):
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def close(number: int) -> None:
  """Closes a stream, as `>&-` does: Python has none then."""
  os.close(number)
  setattr(sys, _NAMES[number], None)


def fill(number: int) -> None:
  os.dup2(os.open("/dev/full", os.O_WRONLY), number)


def leave_unread(number: int) -> None:
  """Makes a stream a pipe whose other end is closed."""
  reads, writes = os.pipe()
  os.close(reads)
  os.dup2(writes, number)


def damaged(rng: random.Random) -> Callable[[], None]:
  """Returns a function that damages some of stdin, stdout and stderr."""
  numbers = [n for n in range(3) if rng.random() < 0.5] or [1]
  acts = [
    close if n == 0 else rng.choice([close, fill, leave_unread])
    for n in numbers
  ]
  return lambda: [act(n) for act, n in zip(acts, numbers, strict=True)]
