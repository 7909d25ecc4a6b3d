"""maskedlm: pretrain masked language models, and put them to work.

In Python, `pretrain(config, workdir)` and `finetune(config, workdir)` train,
and `load(path)` opens a checkpoint (docs/guides/use/python.md). Nothing heavy
is imported before it is needed.
"""

import importlib
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
  from maskedlm.cli.in_python import pretrain
  from maskedlm.finetune.start import finetune
  from maskedlm.inference.ensemble import Ensemble, load_ensemble
  from maskedlm.inference.model import Model, load

__version__ = "0.1.0"
__all__ = (
  "Ensemble",
  "Model",
  "__version__",
  "finetune",
  "load",
  "load_ensemble",
  "pretrain",
)


class FinetuneFolder(types.ModuleType):
  """The folder maskedlm.finetune, which is also the function of that name."""

  def __call__(self, config, workdir) -> dict:
    """Fine-tunes in a workdir; see finetune/start.py."""
    from maskedlm.finetune import start

    return start.finetune(config, workdir)


def __getattr__(name: str):
  if name == "presets":  # Where config files import it from.
    from maskedlm.config import presets

    return presets
  if name not in __all__:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  if name == "finetune":  # A FinetuneFolder.
    return importlib.import_module("maskedlm.finetune")
  if name == "pretrain":
    from maskedlm.cli import in_python

    return in_python.pretrain
  from maskedlm.inference import ensemble, model

  home = ensemble if name in ("Ensemble", "load_ensemble") else model
  return getattr(home, name)


def __dir__() -> list[str]:
  return sorted({*globals(), *__all__})
