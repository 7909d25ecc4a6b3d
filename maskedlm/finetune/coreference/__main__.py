"""Runs `maskedlm finetune coreference`, as a module."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "coreference", *sys.argv[1:]]))
