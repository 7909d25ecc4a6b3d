"""Runs `maskedlm finetune retrieval`, as a module."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "retrieval", *sys.argv[1:]]))
