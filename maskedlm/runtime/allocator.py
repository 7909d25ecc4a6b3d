"""Memory that XLA frees on a CPU is kept by the process, for the next step.

XLA:CPU allocates the temporaries of a program each time it runs. glibc asks the
system for anything that large and gives it back after: in every step the kernel
has to find, clear and map each page anew. On a virtual machine that was a
quarter of the CPU time of a training step (docs/results/performance.md).
"""

import os
import platform
import sys
from collections.abc import MutableMapping

from maskedlm.runtime import xla_flags

# glibc's tunables, which it reads as a process starts: what is set, and why.
TUNABLES = ":".join(
  f"glibc.malloc.{name}={value}"
  for name, value in (
    # What is smaller isn't mapped by itself, and unmapped when it is freed.
    # What is larger is: a hole of gigabytes would cost more than it saves.
    ("mmap_threshold", 2**28),
    # The heap's end isn't given back either.
    ("trim_threshold", 2**64 - 1),
    # Other arenas have no room for what is large.
    ("arena_max", 1),
    # The few bytes beside an aligned block join it again when they are freed.
    # Cached, they would leave a hole in which the same block has no place.
    ("tcache_count", 0),
    # What is mapped comes in pages of 2 MiB, where the kernel has them.
    ("hugetlb", 1),
  )
)


def keep_freed(environ: MutableMapping[str, str] = os.environ) -> None:
  """Starts this program once more, with such a malloc, if JAX is for the CPU.

  The first thing that a program does: what it did before is done again. It
  isn't started anew where jax was imported before; where it is read from stdin;
  where there is no glibc; and where the user has set malloc's options: MALLOC_*
  or GLIBC_TUNABLES. The processes that it starts have the usual malloc.
  """
  if environ.get("GLIBC_TUNABLES") == TUNABLES:  # This is the second start.
    del environ["GLIBC_TUNABLES"]
    return
  if (
    any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in environ)
    or "jax" in sys.modules
    or sys.argv[0] in ("", "-")
    or xla_flags.find_platform(environ) != "cpu"
    or platform.libc_ver()[0] != "glibc"
  ):
    return
  os.execve(
    sys.executable,
    [sys.executable, *sys.orig_argv[1:]],
    {**environ, "GLIBC_TUNABLES": TUNABLES},
  )
