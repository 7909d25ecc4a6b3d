"""Files to write: whether they can be is known before hours of measuring."""

import argparse
import pathlib


def file(text: str) -> pathlib.Path:
  """argparse's type of a file whose folder is there."""
  path = pathlib.Path(text)
  if path.is_dir() or not path.parent.is_dir():
    raise argparse.ArgumentTypeError(
      f"{text}: a folder, or its folder isn't there; make that first"
    )
  return path


# What parser.add_argument("--json", ...) is given, besides.
TABLE = {"type": file, "metavar": "FILE", "help": "where to write the table"}
