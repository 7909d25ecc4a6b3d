"""A step's temporaries are taken from memory that the process has."""

import os
import pathlib
import platform
import resource
import subprocess
import sys

import pytest

from maskedlm.runtime import allocator

pytestmark = pytest.mark.skipif(
  platform.libc_ver()[0] != "glibc", reason="it is glibc's malloc that is set"
)

# The sine of 4096 x 4096 float32 is a temporary: 64 MiB.
PROGRAM = """
import os, sys
from maskedlm.runtime import allocator
allocator.keep_freed()
import jax, jax.numpy as jnp, resource
program = jax.jit(lambda x: jnp.sum(jnp.sin(x) @ x[:, :8]))
x = jnp.ones((4096, 4096))
faults = []
for _ in range(20):
  program(x).block_until_ready()
  faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(faults[-1] - faults[9], os.environ.get("GLIBC_TUNABLES"), *sys.argv[1:])
"""


def run_program(**environ):
  """(pages that the last ten of twenty calls map anew, all that it prints)."""
  kept = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
  process = subprocess.run(
    [sys.executable, "-c", PROGRAM, "an", "argument"],
    env={**kept, "JAX_PLATFORMS": "cpu", **environ},
    check=True,
    text=True,
    capture_output=True,
  )
  return int(process.stdout.split()[0]), process.stdout.split()[1:]


def test_freed_memory_is_used_again():
  pages = 64 * 2**20 // resource.getpagesize()
  # In small pages, as 32 large ones could be mapped each time, unseen.
  small = allocator.TUNABLES.replace("hugetlb=1", "hugetlb=0")
  assert small != allocator.TUNABLES
  faults, _ = run_program(GLIBC_TUNABLES=small)
  # On a busy machine two of the ten may still find another place.
  assert faults < 2.1 * pages


def test_the_second_start_has_its_arguments():
  faults, printed = run_program()
  assert faults < 2.1 * 64 * 2**20 // resource.getpagesize()
  # What it starts has the malloc that it would have.
  assert printed == ["None", "an", "argument"]


def test_without_it_all_is_mapped_anew():
  huge = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
  if huge.exists() and "[always]" in huge.read_text():
    pytest.skip("this kernel maps huge pages: 64 MiB are 32 of them")
  pages = 64 * 2**20 // resource.getpagesize()
  # The user's own options, which are left alone.
  faults, _ = run_program(MALLOC_TRIM_THRESHOLD_="131072")
  assert faults > 9 * pages


@pytest.fixture
def starts(monkeypatch):
  """The starts of a program, which isn't started here: (argv, environment)."""
  starts = []
  monkeypatch.setattr(os, "execve", lambda _, *args: starts.append(args))
  monkeypatch.setattr(sys, "argv", ["/bin/maskedlm", "embed"])
  monkeypatch.setattr(sys, "orig_argv", ["python", "-O", *sys.argv])
  monkeypatch.delitem(sys.modules, "jax", raising=False)
  return starts


def test_it_is_started_with_what_it_was(starts):
  allocator.keep_freed({"JAX_PLATFORMS": "cpu"})
  [(argv, environ)] = starts
  assert argv == [sys.executable, "-O", "/bin/maskedlm", "embed"]
  assert environ.keys() == {"JAX_PLATFORMS", "GLIBC_TUNABLES"}
  allocator.keep_freed(environ)  # The second start.
  assert environ == {"JAX_PLATFORMS": "cpu"}
  assert len(starts) == 1


@pytest.mark.parametrize(
  "environ",
  [
    {"JAX_PLATFORMS": "cuda"},
    {"JAX_PLATFORMS": "cpu", "MALLOC_ARENA_MAX": "4"},
    {"JAX_PLATFORMS": "cpu", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
  ],
)
def test_when_it_is_left_as_it_is(starts, environ):
  before = dict(environ)
  allocator.keep_freed(environ)
  assert not starts
  assert environ == before


def test_not_with_jax_there(starts, monkeypatch):
  monkeypatch.setitem(sys.modules, "jax", None)
  allocator.keep_freed({"JAX_PLATFORMS": "cpu"})
  assert not starts


def test_not_a_program_read_from_stdin(starts, monkeypatch):
  monkeypatch.setattr(sys, "argv", ["-"])
  allocator.keep_freed({"JAX_PLATFORMS": "cpu"})
  assert not starts
