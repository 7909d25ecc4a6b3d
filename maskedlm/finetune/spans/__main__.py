"""`python -m maskedlm.finetune.spans` is `maskedlm finetune spans`."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main(["finetune", "spans", *sys.argv[1:]]))
