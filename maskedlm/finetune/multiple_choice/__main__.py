"""`python -m maskedlm.finetune.multiple_choice` is `maskedlm finetune multiple_choice`."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "multiple_choice", *sys.argv[1:]]))
