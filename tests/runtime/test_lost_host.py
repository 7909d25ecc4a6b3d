"""JAX's abort of a host that has lost another ends it in one line."""

import signal
import subprocess
import sys

import pytest

# Prints as C++ does, then aborts.
ABORT = """
import os, sys, time
from maskedlm.runtime import lost_host
lost_host.watch("error: gone", 75)
print("ours", file=sys.stderr)
os.write(2, sys.argv[1].encode())
os.write(1, b"[Gloo] Rank 1 is connected\\nof C++\\n")
print("result")
time.sleep(0.5)  # For the lines that C++ prints.
os.abort()
"""
PAGE = "E1 Polled an error from coordination service.\nF1 fatal\n  @ frame\n"


@pytest.mark.parametrize(
  ("printed", "code", "said"),
  [
    (PAGE, 75, ["ours", "error: gone"]),
    (f"[Gloo] 1\n{PAGE}", 75, ["[Gloo] 1", "error: gone", "ours"]),
    ("a bug of XLA\n", -signal.SIGABRT, ["a bug of XLA", "ours"]),
  ],
)
def test_only_the_abort_of_a_lost_host_is_one_line(printed, code, said):
  ended = subprocess.run(
    [sys.executable, "-c", ABORT, printed],
    check=False,
    capture_output=True,
    text=True,
  )
  assert ended.returncode == code
  assert sorted(ended.stderr.splitlines()) == sorted(said)
  assert sorted(ended.stdout.splitlines()) == ["of C++", "result"]
