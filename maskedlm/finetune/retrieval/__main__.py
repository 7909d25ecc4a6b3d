"""`python -m maskedlm.finetune.retrieval` is `maskedlm finetune retrieval`."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "retrieval", *sys.argv[1:]]))
