"""Runs `maskedlm finetune classification`, as a module."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "classification", *sys.argv[1:]]))
