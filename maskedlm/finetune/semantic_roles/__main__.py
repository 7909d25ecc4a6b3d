"""Runs `maskedlm finetune semantic_roles`, as a module."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "semantic_roles", *sys.argv[1:]]))
