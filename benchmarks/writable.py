"""Checks, before hours of measuring, that an output file can be written."""

import argparse
import pathlib


def file(text: str) -> pathlib.Path:
  """Returns the path of an argument whose folder exists, for argparse."""
  path = pathlib.Path(text)
  if path.is_dir() or not path.parent.is_dir():
    raise argparse.ArgumentTypeError(
      f"{text}: expected a file in a folder that exists"
    )
  return path


# Keyword arguments of parser.add_argument("--json", ...).
TABLE = {"type": file, "metavar": "FILE", "help": "where to write the table"}
