"""Runs `maskedlm finetune spans`, as a module."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "spans", *sys.argv[1:]]))
