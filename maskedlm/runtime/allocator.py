"""Makes glibc's malloc keep freed memory, which speeds up training on CPUs.

XLA:CPU allocates a program's temporaries each time it runs. By default glibc
gets such large blocks from the kernel and returns them when they are freed, so
in every step the kernel finds, clears and maps each page again. On a virtual
machine that took a quarter of a training step's CPU time
(docs/results/performance.md).
"""

import os
import platform
import sys
from collections.abc import MutableMapping

from maskedlm.runtime import xla_flags

# glibc reads these tunables when a process starts. Each thread has an arena of
# its own, with room for blocks of up to 64 MiB. A single one (arena_max=1)
# would keep larger ones too, but XLA's compiler took twice as long, as its
# threads waited for each other (docs/results/performance.md).
TUNABLES = ":".join(
  f"glibc.malloc.{name}={value}"
  for name, value in (
    # Smaller blocks come from the heap. Larger ones are mapped, and unmapped
    # when freed: an unused hole of gigabytes would cost more than it saves.
    ("mmap_threshold", 2**28),
    # The top of the heap is not returned to the kernel either.
    ("trim_threshold", 2**64 - 1),
    # Mapped memory uses pages of 2 MiB, where the kernel offers them.
    ("hugetlb", 1),
  )
)

restarted = False  # A later call must not restart the program again.


def keep_freed(environ: MutableMapping[str, str] = os.environ) -> None:
  """Restarts this program with TUNABLES set, if JAX will run on the CPU.

  Call it first, as whatever the program did before is done again. It returns
  without a restart if it has restarted the program already, if jax is imported,
  if the program is read from stdin, if there is no glibc, or if the user has
  set malloc's options (MALLOC_* or GLIBC_TUNABLES). Child processes get the
  default malloc.
  """
  global restarted
  if environ.get("GLIBC_TUNABLES") == TUNABLES:  # This is the second start.
    del environ["GLIBC_TUNABLES"]
    restarted = True
  if (
    restarted
    or any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in environ)
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
