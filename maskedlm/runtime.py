"""What a process sets up before it computes."""

import os
import pathlib


def enable_compile_cache() -> None:
  """Keeps compiled programs in the user's cache directory.

  JAX_COMPILATION_CACHE_DIR, where it is set, says where instead.
  """
  import jax

  if not os.environ.get("JAX_COMPILATION_CACHE_DIR"):
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    path = str(pathlib.Path(cache, "maskedlm", "jax"))
    jax.config.update("jax_compilation_cache_dir", path)
