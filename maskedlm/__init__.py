"""maskedlm: pretrain masked language models, and put them to work.

In Python, `train(config, workdir)` pretrains or fine-tunes, and `load(path)`
opens a checkpoint (docs/guides/use/python.md). Nothing heavy is imported before
it is needed.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
  from maskedlm.in_python import load, train
  from maskedlm.inference.ensemble import Ensemble, load_ensemble
  from maskedlm.inference.model import Model

__version__ = "0.1.0"
__all__ = (
  "Ensemble",
  "Model",
  "__version__",
  "load",
  "load_ensemble",
  "train",
)


def __getattr__(name: str):
  if name == "presets":  # Where config files import it from.
    from maskedlm.config import presets

    return presets
  if name in ("load", "train", "pretrain"):  # The last is train's earlier name.
    from maskedlm import in_python

    return getattr(in_python, name.replace("pretrain", "train"))
  if name == "finetune":
    raise AttributeError(
      "maskedlm.finetune is a folder: import it to use it; to fine-tune, call "
      "maskedlm.train(config, workdir)"
    )
  if name not in __all__:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  from maskedlm.inference import ensemble, model

  home = ensemble if name in ("Ensemble", "load_ensemble") else model
  return getattr(home, name)


def __dir__() -> list[str]:
  return sorted({*globals(), *__all__})
