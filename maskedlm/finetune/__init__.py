"""Fine-tuning: a folder for each task, all trained by the same loop.

`maskedlm.finetune(config, workdir)` calls the folder: start.finetune.
"""

import sys
import types


def __getattr__(name: str):
  if name == "glue":  # Where earlier config files import it from.
    from maskedlm.finetune.classification import glue

    return glue
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Callable(types.ModuleType):
  def __call__(self, config, workdir) -> dict:
    """Fine-tunes in a workdir; see start.finetune."""
    from maskedlm.finetune import start

    return start.finetune(config, workdir)


sys.modules[__name__].__class__ = _Callable
