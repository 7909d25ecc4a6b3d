"""Makes chosen calls to the file system fail, in a command of its own.

faulty_storage.c is compiled to a library that stands between a process and
libc, so writes by libraries in C++ and by worker processes fail as well:

  fault = Fault(errno.EIO, "write", "/run/metrics.jsonl", skip=2)
  tiny.run("pretrain", ..., env=environment(fault, log=tmp_path / "log"))
"""

import contextlib
import ctypes
import errno
import functools
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

CALLS = (
  "create",  # open(2) to write.
  "open",  # open(2) to read.
  "write",
  "read",
  "fsync",
  "close",
  "rename",  # By the name before.
  "remove",
  "mkdir",
)
# Those that change the disk: a process that is killed makes no more of them.
CHANGES = ("create", "write", "fsync", "rename", "remove", "mkdir")


class Fault(NamedTuple):
  """Which calls fail, and how."""

  number: int  # The errno.
  calls: str  # Some of CALLS, with commas.
  path: str  # A part of the path.
  skip: int = 0  # How many of these calls succeed before.
  times: int = 0  # How many fail then; 0 = all.


@functools.cache
def library() -> pathlib.Path:
  """Compiles the library; skips the test where there is no compiler."""
  compiler = shutil.which("cc")
  if not compiler or not pathlib.Path("/proc/self/fd").is_dir():
    pytest.skip("needs Linux and a C compiler")
  source = pathlib.Path(__file__).with_suffix(".c")
  made = pathlib.Path(tempfile.mkdtemp(prefix="maskedlm-test-"), "faulty.so")
  command = [compiler, "-shared", "-fPIC", "-o", made, source, "-ldl"]
  subprocess.run(command, check=True)
  return made


def environment(
  fault: Fault | None, log: str | os.PathLike = ""
) -> dict[str, str]:
  """Returns the variables of a process in which `fault` happens.

  Args:
    fault: None = none; FAULT_AT may be set later, in the process itself.
    log: a file that receives a line "CALL PATH" for each call that failed.
  """
  made = {"LD_PRELOAD": str(library())}
  return made | (variables(fault, log) if fault else {})


def variables(fault: Fault, log: str | os.PathLike = "") -> dict[str, str]:
  """Returns the variables that choose the fault, without the library's."""
  made = {"FAULT_AT": rule(fault)}
  return made | ({"FAULT_LOG": str(log)} if log else {})


def rule(fault: Fault) -> str:
  """Returns a fault as the library reads it."""
  fields = (fault.number, fault.calls, fault.skip, fault.times, fault.path)
  return ":".join(map(str, fields))


@contextlib.contextmanager
def injected(fault: Fault) -> Iterator[None]:
  """Makes calls fail in this process, into which the library is loaded."""
  set_fault = ctypes.CDLL(None).set_fault
  set_fault(rule(fault).encode())
  try:
    yield
  finally:
    set_fault(b"")


def count_calls(calls: str, path: str, act: Callable[[], object]) -> int:
  """Returns how many of these calls act() makes below a path."""
  set_fault = ctypes.CDLL(None).set_fault
  set_fault(rule(Fault(errno.EIO, calls, path, skip=2**30)).encode())
  try:
    act()
  finally:
    count = set_fault(b"")
  return count
