"""`python -m maskedlm VERB` is `maskedlm VERB`."""

import sys

from maskedlm import cli

if __name__ == "__main__":
  sys.exit(cli.main())
