"""`python -m maskedlm.finetune` is `maskedlm finetune`."""

import sys

from maskedlm import cli
from maskedlm.finetune.main import main

if __name__ == "__main__":
  sys.exit(cli.run(main))
