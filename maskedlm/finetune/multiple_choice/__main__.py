"""Runs `maskedlm finetune multiple_choice`, as a module."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "multiple_choice", *sys.argv[1:]]))
