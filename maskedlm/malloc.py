"""Memory that XLA frees is kept by the process, for the next step.

XLA:CPU allocates the temporaries of a program each time it runs. glibc asks the
system for anything that large and gives it back after: in every step the kernel
has to find, clear and map each page anew. On a virtual machine that was a
quarter of the CPU time of a training step (docs/performance.md).
"""

import ctypes
import os
import platform
import sys
from collections.abc import Mapping

from maskedlm import xla_flags

# glibc's mallopt(3): what is set, to what, and why.
_OPTIONS = (
  (-8, 1),  # M_ARENA_MAX: other arenas have no room for what is large.
  (-4, 0),  # M_MMAP_MAX: nothing is mapped by itself, and unmapped when freed.
  (-1, -1),  # M_TRIM_THRESHOLD: the heap's end isn't given back either.
)


def keep_freed(environ: Mapping[str, str] = os.environ) -> bool:
  """Sets this process's malloc so, if JAX will use the CPU; True if it did.

  It doesn't where jax was imported before, whose threads have arenas already;
  where there is no glibc; and where the user has set malloc's options: MALLOC_*
  or GLIBC_TUNABLES.
  """
  if (
    any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in environ)
    or "jax" in sys.modules
    or xla_flags.find_platform(environ) != "cpu"
    or platform.libc_ver()[0] != "glibc"
  ):
    return False
  mallopt = ctypes.CDLL(None).mallopt
  return 0 not in [mallopt(option, value) for option, value in _OPTIONS]
