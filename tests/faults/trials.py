"""Runs maskedlm in forked processes and judges how each run ended.

A fork of a process that has imported everything starts in milliseconds; a
campaign of a thousand trials takes minutes instead of hours.
"""

import json
import math
import os
import pathlib
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple

EXPECTED_CODES = (0, 2, 3, 74, 75, 130, 141)
_QUIET = re.compile(r"Traceback|^  File \"|Exception ignored|Fatal Python")


class Ended(NamedTuple):
  code: int  # Negative: the number of the signal.
  stdout: str
  stderr: str
  seconds: float

  @property
  def fault(self) -> str | None:
    """Returns what a user should not see, or None."""
    if self.code == HUNG:
      return "hangs"
    if _QUIET.search(self.stdout + self.stderr):
      return "traceback"
    if self.code < 0:
      return f"dies of signal {-self.code}"
    if self.code not in EXPECTED_CODES:
      return f"exit code {self.code}"
    if self.code in (2, 74) and not self.stderr.strip():
      return f"exit code {self.code} without a message"
    return None


HUNG = -1000


def preload() -> None:
  """Imports what the verbs import, without starting JAX's backend."""
  import flax  # noqa: F401
  import optax  # noqa: F401
  import orbax.checkpoint  # noqa: F401

  from maskedlm.cli import (  # noqa: F401
    embed,
    evaluate,
    export,
    fill_mask,
    finetune,
    import_,
    inspect,
    main,
    predict,
    prepare,
    pretrain,
  )


def start(
  argv: Sequence[str],
  output: pathlib.Path,
  *,
  devices: int = 1,
  inject: Callable[[], None] = lambda: None,
  environ: dict[str, str] | None = None,
) -> int:
  """Forks and runs `maskedlm ARGV`; returns the process's number.

  Args:
    argv: the words of the command.
    output: the prefix of the files of stdout and stderr.
    devices: the number of virtual CPU devices.
    inject: called in the new process before the command starts.
    environ: variables of the new process.
  """
  sys.stdout.flush()
  sys.stderr.flush()
  pid = os.fork()
  if pid:
    return pid
  code = 1
  try:
    os.setsid()
    os.environ["XLA_FLAGS"] += (
      f" --xla_force_host_platform_device_count={devices}"
    )
    os.environ.update(environ or {})
    for number, name in ((1, "out"), (2, "err")):
      opened = os.open(f"{output}.{name}", os.O_CREAT | os.O_TRUNC | os.O_RDWR)
      os.dup2(opened, number)
      os.close(opened)
    from maskedlm.cli import main

    # As the command: a program that calls it would keep its own signals.
    sys.argv = ["maskedlm", *map(str, argv)]
    inject()
    for number, name in ((1, "stdout"), (2, "stderr")):
      if getattr(sys, name):  # A stream knows what kind its file was.
        made = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, name, made)
    code = main.main()
  except SystemExit as ended:
    code = ended.code if isinstance(ended.code, int) else 1
  except BaseException:
    traceback.print_exc()
  finally:
    _leave(code)


def _leave(code):
  """Ends as the interpreter does: flushes; the code says if that fails."""
  for stream in filter(None, (sys.stdout, sys.stderr)):
    try:
      stream.flush()
    except (OSError, ValueError):
      code = code or 120
  threading._shutdown()
  os._exit(code)


def wait(pid: int, output: pathlib.Path, seconds: float) -> Ended:
  """Waits for a process; kills it after `seconds`."""
  began, status = time.time(), None
  while status is None:
    found, value = os.waitpid(pid, os.WNOHANG)
    if found:
      status = os.waitstatus_to_exitcode(value)
    elif time.time() - began > seconds:
      os.killpg(pid, signal.SIGKILL)
      os.waitpid(pid, 0)
      status = HUNG
    else:
      time.sleep(0.01)
  texts = [
    pathlib.Path(f"{output}.{name}").read_text(errors="replace")
    for name in ("out", "err")
  ]
  return Ended(status, *texts, time.time() - began)


def run(argv, output, *, seconds=120.0, **options) -> Ended:
  """Runs `maskedlm ARGV` to its end; options as in `start`."""
  return wait(start(argv, output, **options), output, seconds)


def learned(workdir: pathlib.Path) -> dict:
  """Returns the exact metrics of each step that a run logged last."""
  values = {}
  for line in (workdir / "metrics.jsonl").read_text().splitlines():
    value = json.loads(line)
    value.pop("tokens_per_second", None)
    values[value["step"], value.get("split", "heldout" in line)] = value
  return values


def same(
  a: pathlib.Path, b: pathlib.Path, *, tolerance: float = 0.0, since: int = 0
) -> bool:
  """Returns whether two runs logged the same losses.

  Args:
    a: a workdir.
    b: another.
    tolerance: relative; 0 = every metric of every step is equal to the bit.
    since: the first step that is compared.
  """
  a, b = (
    {key: value for key, value in learned(run).items() if key[0] >= since}
    for run in (a, b)
  )
  if not tolerance:
    return a == b
  return a.keys() == b.keys() and all(
    math.isclose(value, b[step].get(name, math.nan), rel_tol=tolerance)
    for step, values in a.items()
    for name, value in values.items()
    if name.endswith("loss")
  )
