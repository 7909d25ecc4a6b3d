"""Names this machine and its packages, for the lines beside the tables."""

import importlib.metadata
import importlib.util
import os
import pathlib
import platform
import re


def cpu() -> str:
  """Returns the CPU's name and the number of its cores."""
  name, path = platform.machine(), pathlib.Path("/proc/cpuinfo")
  if path.exists():
    match = re.search(r"model name\s*: (.*)", path.read_text())
    name = match[1] if match else name
  return f"{name}, {os.cpu_count()} cores"


def versions(*packages: str) -> str:
  """Returns the names and versions of those packages that are installed."""
  return ", ".join(
    f"{package} {importlib.metadata.version(package)}"
    for package in packages
    if importlib.util.find_spec(package)
  )
