"""`python -m maskedlm.finetune` is `maskedlm finetune`."""

import sys

from maskedlm import cli
from maskedlm.finetune.main import main

sys.exit(cli.run(main))
