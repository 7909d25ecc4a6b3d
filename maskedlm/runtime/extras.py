"""Packages that only one of maskedlm's extras installs."""

import importlib
from typing import Any

from maskedlm.core.errors import ConfigError


def load(package: str, extra: str, what: str) -> Any:
  """Returns a package that `what` needs; raises ConfigError without it."""
  try:
    return importlib.import_module(package)
  except ModuleNotFoundError as error:
    if error.name != package:
      raise
    raise ConfigError(
      f"{what} needs {package}: pip install 'maskedlm[{extra}]'."
    ) from None
