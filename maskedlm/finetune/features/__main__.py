"""Runs `maskedlm finetune features`, as a module."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "features", *sys.argv[1:]]))
