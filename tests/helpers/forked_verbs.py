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
import maskedlm.cli.pretrain, maskedlm.cli.finetune, maskedlm.pretraining.run
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
  name = ("stdin", "stdout", "stderr")[number]
  if path == "CLOSED":  # As python finds it: no file, and no stream.
    os.close(number)
    setattr(sys, name, None)
    continue
  if path == "BROKEN":
    read, file = os.pipe()
    os.close(read)
  else:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY
    file = os.open(path, flags, 0o666)
  os.dup2(file, number)
  os.close(file)
  # A stream remembers whether its file can be sought.
  mode, buffering = ("r", "w", "w")[number], (-1, -1, 1)[number]
  setattr(sys, name, open(number, mode, buffering, closefd=False))
sys.argv = ["maskedlm", *request["argv"]]
sys.exit(main.main())
"""


CLOSED, BROKEN = "CLOSED", "BROKEN"  # Instead of a path.


class Ended(NamedTuple):
  """The outcome of a run."""

  code: int  # The exit code; minus a signal's number.
  stdout: str
  stderr: str
  seconds: float


Run = Callable[..., Ended]


@contextlib.contextmanager
def server(env: Mapping[str, str] | None = None) -> Iterator[Run]:
  """Yields run(argv, env=None, *, cwd, stdin, stdout, stderr, watch, timeout).

  stdin, stdout and stderr are paths, CLOSED (as by `>&-`) or BROKEN (a pipe
  that nobody reads); by default nothing is read, and the texts are returned.
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

  def run(
    argv,
    env=None,
    *,
    cwd=".",
    stdin=os.devnull,
    stdout="",
    stderr="",
    watch=None,
    timeout=120,
  ) -> Ended:
    with tempfile.TemporaryDirectory() as folder:
      files = [stdin, stdout or f"{folder}/out", stderr or f"{folder}/err"]
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
      # Not /dev/full, which can be read without end.
      texts = [_read(f"{folder}/{name}") for name in ("out", "err")]
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
