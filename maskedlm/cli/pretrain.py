"""`maskedlm pretrain`: pretrains an encoder on raw text."""

import argparse
from collections.abc import Sequence

from maskedlm import in_python
from maskedlm.cli import exit_codes
from maskedlm.config import existing, overrides


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm pretrain",
    description="Pretrains as a config says; run again, it continues from its "
    "newest checkpoint. docs/reference/options.md has every "
    "option.",
  )
  parser.add_argument(
    "--workdir",
    help="checkpoints, logs, results; default: runs/<name>. Without --config, "
    "the run that is there continues with its own config",
  )
  args, config = overrides.parse_config(
    parser,
    argv,
    fit=existing.fit_to_corpus,
    made=lambda args, config: args.workdir or f"runs/{config.name}",
  )
  workdir = args.workdir or f"runs/{config.name}"
  complete = in_python.run_pretraining(config, workdir)
  return 0 if complete else exit_codes.INTERRUPTED_AND_SAVED
