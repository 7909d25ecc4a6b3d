"""Runs `maskedlm finetune dependency`, as a module."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "dependency", *sys.argv[1:]]))
