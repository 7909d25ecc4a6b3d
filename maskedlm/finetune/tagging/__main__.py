"""Runs `maskedlm finetune tagging`, as a module."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "tagging", *sys.argv[1:]]))
