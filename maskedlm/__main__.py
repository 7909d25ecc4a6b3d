"""`python -m maskedlm VERB` is `maskedlm VERB`."""

import sys

from maskedlm.cli import main

if __name__ == "__main__":
  sys.exit(main.main())
