"""Maps .npy files into memory, and returns their pages to the system.

A page that was read counts as the process's memory (RSS) until the system needs
it, so a trainer would seem to grow as large as its corpus: Linux maps up to
2 MB for each row. `drop_pages` returns the pages. They stay in the system's
cache; reading one again costs a page fault, and few pages of a large corpus are
read again soon, since rows are drawn at random from all of it.
"""

import mmap
import weakref
from typing import IO

import numpy as np

SMALL = 1 << 29  # Bytes; files up to this total size may stay in memory.
_maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()  # Of all arrays in use.


def map_vector(
  file: IO[bytes], dtype: np.dtype, size: int, *, offset: int
) -> np.ndarray:
  """Returns the memory-mapped vector [size] that begins at a byte of a file.

  It is a plain array: indexing a np.memmap is several times as slow. The file
  may be closed afterwards.
  """
  array = np.memmap(file, dtype, "r", offset, (size,))
  if isinstance(array.base, mmap.mmap):
    _maps.add(array.base)
  return np.asarray(array)


def drop_pages() -> None:
  """Drops the pages of all mapped arrays if their total size exceeds SMALL."""
  maps = list(_maps)
  if sum(map(len, maps)) > SMALL and hasattr(mmap, "MADV_DONTNEED"):
    for mapped in maps:
      mapped.madvise(mmap.MADV_DONTNEED)
