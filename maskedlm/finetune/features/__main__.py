"""`python -m maskedlm.finetune.features` is `maskedlm finetune features`."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "features", *sys.argv[1:]]))
