"""A step's temporaries are taken from memory that the process has."""

import os
import pathlib
import resource
import subprocess
import sys

import pytest

from maskedlm import malloc

pytestmark = pytest.mark.skipif(
  not sys.platform.startswith("linux"), reason="glibc's malloc is on Linux"
)

# The sine of 4096 x 4096 float32 is a temporary: 64 MiB.
PROGRAM = """
from maskedlm import cli

def main(argv):
  import jax, jax.numpy as jnp, resource
  program = jax.jit(lambda x: jnp.sum(jnp.sin(x) @ x[:, :8]))
  x = jnp.ones((4096, 4096))
  faults = []
  for _ in range(8):
    program(x).block_until_ready()
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
  print(*(b - a for a, b in zip(faults[2:], faults[3:])))

cli.run(main, [])
"""


def faults_of_calls(**environ):
  """Pages that five calls of a program map anew, fewest first.

  Three go before: each of the first may still find a place of its own.
  """
  kept = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
  process = subprocess.run(
    [sys.executable, "-c", PROGRAM],
    env={**kept, "JAX_PLATFORMS": "cpu", **environ},
    check=True,
    text=True,
    capture_output=True,
  )
  return sorted(map(int, process.stdout.split()))


def test_freed_memory_is_used_again():
  pages = 64 * 2**20 // resource.getpagesize()
  assert faults_of_calls()[0] < pages / 20


def test_without_it_all_is_mapped_anew():
  huge = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
  if huge.exists() and "[always]" in huge.read_text():
    pytest.skip("this kernel maps huge pages: 64 MiB are 32 of them")
  pages = 64 * 2**20 // resource.getpagesize()
  # The user's own options, which are left alone.
  assert faults_of_calls(MALLOC_TRIM_THRESHOLD_="131072")[-1] > 0.9 * pages


@pytest.mark.parametrize(
  "environ",
  [
    {"JAX_PLATFORMS": "cuda"},
    {"JAX_PLATFORMS": "cpu", "MALLOC_ARENA_MAX": "4"},
    {"JAX_PLATFORMS": "cpu", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
  ],
)
def test_when_it_is_left_as_it_is(monkeypatch, environ):
  monkeypatch.delitem(sys.modules, "jax", raising=False)
  assert not malloc.keep_freed(environ)


def test_not_with_jax_there(monkeypatch):
  monkeypatch.setitem(sys.modules, "jax", None)
  assert not malloc.keep_freed({"JAX_PLATFORMS": "cpu"})
