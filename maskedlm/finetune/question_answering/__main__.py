"""Runs `maskedlm finetune question_answering`, as a module."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "question_answering", *sys.argv[1:]]))
