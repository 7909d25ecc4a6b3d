"""Runs `maskedlm finetune text_features`, as a module."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "text_features", *sys.argv[1:]]))
