"""`maskedlm status`: shows how far runs are, from their workdirs alone."""

import argparse
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.runtime import console
from maskedlm.training import status


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm status",
    description="Shows how far runs are: the last logged step, losses, speed, "
    "the newest checkpoint, and when something was last written. It reads "
    "workdirs alone, from any machine that sees them.",
    allow_abbrev=False,
  )
  options.add_workdirs(parser)
  options.add_json(parser, "print a JSON line for each run")
  args = parser.parse_args(argv)
  for workdir in args.workdirs:
    found = status.read_status(workdir)
    if args.json:
      console.print_json(found)
    else:
      print(status.format_status(found), flush=True)
  return 0
