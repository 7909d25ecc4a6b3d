"""Runs `maskedlm finetune constituency`, as a module."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "constituency", *sys.argv[1:]]))
