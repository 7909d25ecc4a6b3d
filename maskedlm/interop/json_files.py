"""JSON files of directories: objects that are read, and what is written."""

import json
import pathlib
from typing import Any

from maskedlm.interop.errors import InteropError


def read(path: pathlib.Path) -> dict[str, Any]:
  """The object in a file; {} without one.

  Raises:
    InteropError: something else is in it.
  """
  if not path.is_file():
    return {}
  try:
    value = json.loads(path.read_text("utf-8"))
    if not isinstance(value, dict):
      raise ValueError("not an object")
  except ValueError as error:
    raise InteropError(
      f"{path} is not JSON ({error}); fetch it again."
    ) from None
  return value


def write(path: pathlib.Path, content: Any) -> None:
  """For people, too: indented, and as few escapes as can be."""
  text = json.dumps(content, indent=2, ensure_ascii=False)
  path.write_text(text + "\n", "utf-8")
