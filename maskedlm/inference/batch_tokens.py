"""How many positions the encoder reads at once by default, padding included.

A CPU gains nothing from large batches: with 4,096 positions instead of 1,024, a
sentence's vector takes a tenth longer.
"""

import os

from maskedlm.runtime import xla_flags

BATCH_TOKENS = 1024 if xla_flags.find_platform(os.environ) == "cpu" else 4096
