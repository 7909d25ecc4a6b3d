"""Runs `maskedlm finetune relations`, as a module."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "relations", *sys.argv[1:]]))
