"""Types of arguments that are checked before hours of measuring."""

import argparse
import math
import pathlib


def count(text: str) -> int:
  """Returns a whole number that is at least 1."""
  number = int(text)
  if number < 1:
    raise argparse.ArgumentTypeError(f"{text}: expected at least 1")
  return number


def amount(text: str) -> float:
  """Returns a number that is more than 0."""
  number = float(text)
  if not 0 < number < math.inf:
    raise argparse.ArgumentTypeError(f"{text}: expected a number above 0")
  return number


def file(text: str) -> pathlib.Path:
  """Returns the path of a file whose folder exists."""
  path = pathlib.Path(text)
  if path.is_dir() or not path.parent.is_dir():
    raise argparse.ArgumentTypeError(
      f"{text}: expected a file in a folder that exists"
    )
  return path


# Keyword arguments of parser.add_argument("--json", ...).
TABLE = {"type": file, "metavar": "FILE", "help": "where to write the table"}
