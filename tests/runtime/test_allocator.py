"""A step's temporaries reuse memory that the process already has."""

import os
import platform
import resource
import subprocess
import sys

import pytest

from maskedlm.runtime import allocator

pytestmark = pytest.mark.skipif(
  platform.libc_ver()[0] != "glibc", reason="sets options of glibc's malloc"
)

# The square of 4096 x 2048 float32 is a temporary: 32 MiB.
PROGRAM = """
import os, sys
from maskedlm.runtime import allocator
allocator.keep_freed()
allocator.keep_freed()  # As a module that it imports may do.
import jax, jax.numpy as jnp, resource
program = jax.jit(lambda x: jnp.sum((x * x) @ x[:2048, :8]))
x = jnp.ones((4096, 2048))
faults = []
for _ in range(60):  # Each of XLA's threads has an arena of its own.
  program(x).block_until_ready()
  faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""
PRINTED = """
print({faults}, os.environ.get("GLIBC_TUNABLES"), *sys.argv[1:])
"""


def run_program(program, **environ):
  """Returns (pages newly mapped by calls 51 to 60, everything else printed)."""
  kept = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
  process = subprocess.run(
    [sys.executable, "-c", program, "an", "argument"],
    env={**kept, "JAX_PLATFORMS": "cpu", **environ},
    check=True,
    text=True,
    capture_output=True,
  )
  return int(process.stdout.split()[0]), process.stdout.split()[1:]


# Small pages: with huge ones only 16 would be mapped each time, too few to
# notice.
SMALL = {"GLIBC_TUNABLES": allocator.TUNABLES.replace("hugetlb=1", "hugetlb=0")}


def test_freed_memory_is_reused():
  faults, _ = run_program(
    PROGRAM + PRINTED.format(faults="faults[-1] - faults[49]"), **SMALL
  )
  # On a busy machine two of the ten calls may still get new memory.
  assert faults < 2.1 * 32 * 2**20 // resource.getpagesize()


def test_the_restarted_program_keeps_its_arguments():
  """Its child processes get the default malloc."""
  begin, _, _ = PROGRAM.partition("import jax")
  _, printed = run_program(begin + PRINTED.format(faults=0))
  assert printed == ["None", "an", "argument"]


@pytest.fixture
def starts(monkeypatch):
  """Records (argv, environment) of each restart instead of restarting."""
  starts = []
  monkeypatch.setattr(os, "execve", lambda _, *args: starts.append(args))
  monkeypatch.setattr(sys, "argv", ["/bin/maskedlm", "embed"])
  monkeypatch.setattr(sys, "orig_argv", ["python", "-O", *sys.argv])
  monkeypatch.delitem(sys.modules, "jax", raising=False)
  monkeypatch.setattr(allocator, "restarted", False)
  return starts


def test_restart_keeps_interpreter_arguments_and_environment(starts):
  allocator.keep_freed({"JAX_PLATFORMS": "cpu"})
  [(argv, environ)] = starts
  assert argv == [sys.executable, "-O", "/bin/maskedlm", "embed"]
  assert environ.keys() == {"JAX_PLATFORMS", "GLIBC_TUNABLES"}
  allocator.keep_freed(environ)  # As called after the restart.
  assert environ == {"JAX_PLATFORMS": "cpu"}
  allocator.keep_freed(environ)  # By a module that the program imports.
  assert len(starts) == 1


@pytest.mark.parametrize(
  "environ",
  [
    {"JAX_PLATFORMS": "cuda"},
    {"JAX_PLATFORMS": "cpu", "MALLOC_ARENA_MAX": "4"},
    {"JAX_PLATFORMS": "cpu", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
  ],
)
def test_other_platforms_and_the_users_options_are_left_alone(starts, environ):
  before = dict(environ)
  allocator.keep_freed(environ)
  assert not starts
  assert environ == before


def test_no_restart_once_jax_is_imported(starts, monkeypatch):
  monkeypatch.setitem(sys.modules, "jax", None)
  allocator.keep_freed({"JAX_PLATFORMS": "cpu"})
  assert not starts


def test_no_restart_of_a_program_read_from_stdin(starts, monkeypatch):
  monkeypatch.setattr(sys, "argv", ["-"])
  allocator.keep_freed({"JAX_PLATFORMS": "cpu"})
  assert not starts
