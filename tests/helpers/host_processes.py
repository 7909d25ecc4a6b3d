"""Runs several hosts, as processes that communicate over gloo on the CPU."""

import json
import os
import socket
import subprocess
import sys

from helpers import tiny
from helpers.repository import ROOT

TESTS = ROOT / "tests"
TOY = [sys.executable, str(TESTS / "helpers" / "one_host.py")]


def start(
  count,
  *argv,
  devices=1,
  folders=None,
  within=((),) * 4,
  address=None,
  **environ,
):
  """Starts argv as `count` hosts.

  Args:
    count: the number of hosts.
    argv: the command of each.
    devices: of each host, or a list of numbers.
    within: for each host, a command that runs argv.
  """
  if address is None:
    with socket.socket() as free:
      free.bind(("127.0.0.1", 0))
      address = f"127.0.0.1:{free.getsockname()[1]}"
  devices = [devices] * count if isinstance(devices, int) else devices
  return [
    subprocess.Popen(
      list(map(str, [*within[i], *argv])),
      env={
        **tiny.environment(devices[i]),
        "PYTHONPATH": f"{TESTS}{os.pathsep}{ROOT}",
        "PYTHONUNBUFFERED": "1",
        "JAX_COORDINATOR_ADDRESS": address,
        "JAX_NUM_PROCESSES": str(count),
        "JAX_PROCESS_ID": str(i),
        **environ,
      },
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
      cwd=folders[i] if folders else None,
    )
    for i in range(count)
  ]


def finish(processes, seconds=900):
  """Returns [(exit code, stdout, stderr)] of the hosts."""
  try:
    texts = [process.communicate(timeout=seconds) for process in processes]
  finally:
    for process in processes:
      process.kill()
  return [
    (p.returncode, *text) for p, text in zip(processes, texts, strict=True)
  ]


def run(count, *argv, **options):
  """Runs argv on `count` hosts, which must all succeed."""
  ended = finish(start(count, *argv, **options))
  assert [code for code, _, _ in ended] == [0] * count, ended
  return ended


def wait_for(words, process):
  for line in process.stderr:
    if words in line:
      return
  raise AssertionError(f"it ended before {words!r}: {process.wait()}")


def losses(workdir):
  """Returns the logged metrics of each step, exact, without the speed."""
  lines = (workdir / "metrics.jsonl").read_text().splitlines()
  values = [json.loads(line) for line in lines]
  for value in values:
    value.pop("tokens_per_second", None)
  return values


def steps(workdir):
  found = (workdir / "checkpoints").iterdir()
  return sorted(int(path.name) for path in found if path.name.isdigit())
