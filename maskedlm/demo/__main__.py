"""`python -m maskedlm.demo` is `maskedlm demo`."""

import sys

from maskedlm import cli
from maskedlm.demo.main import main

if __name__ == "__main__":
  sys.exit(cli.run(main))
