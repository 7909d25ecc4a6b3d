"""Runs `maskedlm finetune multi_label`, as a module."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "multi_label", *sys.argv[1:]]))
