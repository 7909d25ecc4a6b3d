"""`python -m maskedlm.finetune.relations` is `maskedlm finetune relations`."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "relations", *sys.argv[1:]]))
