"""maskedlm: pretrain masked language models, and put them to work.

`maskedlm.load(path)` opens a checkpoint in Python
(docs/guides/use/python.md). Nothing heavy is imported before it is needed.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
  from maskedlm.inference.model import Model, load

__version__ = "0.1.0"
__all__ = ("Model", "__version__", "load")


def __getattr__(name: str):
  if name == "presets":  # Where config files import it from.
    from maskedlm.config import presets

    return presets
  if name not in __all__:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  from maskedlm.inference import model

  return getattr(model, name)


def __dir__() -> list[str]:
  return sorted({*globals(), *__all__})
