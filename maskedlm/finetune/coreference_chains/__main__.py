"""Runs `maskedlm finetune coreference_chains`, as a module."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "coreference_chains", *sys.argv[1:]]))
