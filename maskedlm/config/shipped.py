"""Finds the configs that come with maskedlm by their names, in any folder."""

import pathlib

from maskedlm.core.errors import did_you_mean

_PACKAGE = pathlib.Path(__file__).parent.parent


def folder() -> pathlib.Path:
  """Returns the folder of the configs: a wheel's, or that of a checkout."""
  shipped = _PACKAGE / "configs"
  return shipped if shipped.is_dir() else _PACKAGE.parent / "configs"


def find(path: str) -> str:
  """Returns the file of --config=FILE[:ARG], or of a config's name.

  `quickstart`, `bert:base` and `configs/bert.py:base` name configs of maskedlm
  unless there is such a file here; any other path is returned as it is.
  """
  file, colon, argument = path.partition(":")
  name = _name(file)
  shipped = folder() / f"{name}.py"
  if pathlib.Path(file).is_file() or "/" in name or not shipped.is_file():
    return path
  return f"{shipped}{colon}{argument}"


def nearest(path: str) -> str:
  """Returns ' (did you mean "bert"?)' for a misspelt name, else ""."""
  names = sorted(file.stem for file in folder().glob("*.py"))
  return did_you_mean(_name(path.partition(":")[0]), names)


def _name(file: str) -> str:
  return file.removeprefix("configs/").removesuffix(".py")
