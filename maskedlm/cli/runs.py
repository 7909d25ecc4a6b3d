"""`maskedlm runs`: lists the checkpoints of a run, with losses and sizes."""

import argparse
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.runtime import console
from maskedlm.training.checkpoints import listing


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm runs",
    description="Lists the checkpoints of runs: step, held-out loss (of a "
    "fine-tuned model, its metric), size, and what is damaged. Every file "
    "is compared with its SHA-256.",
    allow_abbrev=False,
  )
  options.add_workdirs(parser)
  options.add_json(parser, "print a JSON line for each checkpoint")
  args = parser.parse_args(argv)
  for workdir in args.workdirs:
    steps = []
    for step in listing.list_steps(workdir):
      if args.json:
        console.print_json({"workdir": workdir, **step})
      steps.append(step)
    if not args.json:
      print("\n".join([workdir, *listing.format_steps(steps)]), flush=True)
  return 0
