"""How many positions the encoder reads at once by default, padding included.

A CPU gains nothing from large batches, whose texts differ more in length: 1,024
instead of 4,096 positions saved a fifth of the time of sentences' vectors
(docs/results/performance.md).
"""

import os

from maskedlm.runtime import xla_flags

BATCH_TOKENS = 1024 if xla_flags.find_platform(os.environ) == "cpu" else 4096
