"""Runs `maskedlm VERB ...` many times without importing jax each time.

A server process imports everything once; each run is a fork of it, from before
jax has started a thread, with its own stdin, stdout, stderr and environment.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

# The fork leaves the loop: its interpreter ends as that of the command does.
_SERVER = """
import json, os, sys
import jax, orbax.checkpoint, tensorboardX, grain, optax
from maskedlm.cli import main
import maskedlm.cli.pretrain, maskedlm.cli.finetune, maskedlm.training.loop
for line in sys.stdin:
  request = json.loads(line)
  child = os.fork()
  if not child:
    break
  print(child, flush=True)
  print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
  os._exit(0)
os.setsid()
os.environ.update(request["env"])
os.chdir(request["cwd"])
for number, path in enumerate(request["files"]):
  flags = os.O_RDONLY if not number else os.O_WRONLY | os.O_CREAT | os.O_APPEND
  os.dup2(os.open(path, flags, 0o666), number)
sys.argv = ["maskedlm", *request["argv"]]
sys.exit(main.main(request["argv"]))
"""


class Ended(NamedTuple):
  """The outcome of a run."""

  code: int  # The exit code; minus a signal's number.
  stdout: str
  stderr: str
  seconds: float


Run = Callable[..., Ended]


@contextlib.contextmanager
def server(env: Mapping[str, str] | None = None) -> Iterator[Run]:
  """Yields run(argv, env=None, cwd=".", watch=None, timeout=120).

  watch(pid, stderr's path), if given, is called once the run has begun, as to
  send it signals. A run that takes too long is killed: its code is -9.

  Args:
    env: for the server, such as LD_PRELOAD.
  """
  process = subprocess.Popen(
    [sys.executable, "-c", _SERVER],
    env={**os.environ, **(env or {})},
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
  )

  def run(argv, env=None, *, cwd=".", watch=None, timeout=120) -> Ended:
    with tempfile.TemporaryDirectory() as folder:
      files = [os.devnull, f"{folder}/out", f"{folder}/err"]
      request = {
        "argv": list(map(str, argv)),
        "env": dict(env or {}),
        "cwd": os.path.abspath(cwd),
        "files": files,
      }
      began = time.monotonic()
      print(json.dumps(request), file=process.stdin, flush=True)
      child = int(process.stdout.readline())
      timer = _kill_after(child, timeout)
      if watch:
        watch(child, files[2])
      code = int(process.stdout.readline())
      timer.cancel()
      texts = [_read(path) for path in files[1:]]
    return Ended(code, *texts, time.monotonic() - began)

  try:
    yield run
  finally:
    process.stdin.close()
    process.wait(30)


def _kill_after(child: int, seconds: float) -> threading.Timer:
  def kill() -> None:
    with contextlib.suppress(ProcessLookupError):
      os.kill(child, signal.SIGKILL)

  timer = threading.Timer(seconds, kill)
  timer.start()
  return timer


def _read(path: str) -> str:
  try:
    with open(path, errors="replace") as file:
      return file.read()
  except FileNotFoundError:
    return ""
