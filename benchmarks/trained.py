"""Pretrains models for benchmarks, each in its own process."""

import json
import os
import pathlib
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).parents[1]
DATA = pathlib.Path(
  os.environ.get("MASKEDLM_DATA", ROOT.parent / "shared" / "data")
)


class Trained(NamedTuple):
  """A finished run of `maskedlm pretrain`."""

  seconds: float  # From the command to its end.
  memory: float  # GB of resident memory, at most.
  result: Mapping[str, Any]  # Its result.json.


def text_source() -> str:
  """Returns config.corpus.source: novels if they are there, or docstrings."""
  novels = DATA / "text" / "en_novels.txt"
  return f"text:{novels}" if novels.is_file() else "docstrings:"


def arguments(config: str, options: Mapping[str, Any]) -> list[str]:
  """Returns the options of the command line.

  Args:
    config: a file of configs/, with its argument.
    options: name, without "config.", -> value.
  """
  flags = [f"--config.{name}={value}" for name, value in options.items()]
  return [f"--config={ROOT / 'configs' / config}", *flags]


def wait(process: subprocess.Popen) -> tuple[int, resource.struct_rusage]:
  """Returns the status and what was used; an interrupt ends the process."""
  try:
    _, status, usage = os.wait4(process.pid, 0)
  except BaseException:
    process.terminate()
    process.wait()
    raise
  return status, usage


def pretrain(
  config: str,
  workdir: pathlib.Path,
  options: Mapping[str, Any],
  environ: Mapping[str, str] = os.environ,
) -> Trained:
  """Runs `maskedlm pretrain`; its log lines are printed if it fails.

  Raises:
    SystemExit: it failed.
  """
  log = workdir.with_suffix(".log")
  began = time.perf_counter()
  with log.open("w") as file:
    process = subprocess.Popen(
      [
        *(sys.executable, "-m", "maskedlm", "pretrain"),
        f"--workdir={workdir}",
        *arguments(config, options),
      ],
      env=dict(environ),
      cwd=ROOT,
      stdout=file,
      stderr=file,
    )
    status, usage = wait(process)
  seconds = time.perf_counter() - began
  if status:
    raise SystemExit(log.read_text())
  result = json.loads((workdir / "result.json").read_text())
  return Trained(seconds, usage.ru_maxrss * 1024 / 1e9, result)
