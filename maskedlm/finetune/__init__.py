"""Fine-tuning: a folder for each task, all trained by the same loop.

`maskedlm.finetune(config, workdir)` calls the folder: start.finetune.
"""

import sys

from maskedlm import FinetuneFolder


def __getattr__(name: str):
  if name == "glue":  # Where earlier config files import it from.
    from maskedlm.data.labelled.formats import glue

    return glue
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


sys.modules[__name__].__class__ = FinetuneFolder
