"""Maps .npy files into memory, and returns their pages to the system.

A page that was read counts as the process's memory (RSS) until the system needs
it, so a trainer would seem to grow as large as its corpus: Linux maps up to
2 MB for each row. `drop_pages` returns the pages. They stay in the system's
cache; reading one again costs a page fault, and few pages of a large corpus are
read again soon, since rows are drawn at random from all of it.
"""

import mmap
import weakref

import numpy as np

SMALL = 1 << 29  # Bytes; files up to this total size may stay in memory.
_maps = weakref.WeakSet()  # Maps of all arrays that are still in use.


def map_array(path: str) -> np.ndarray:
  """Returns the memory-mapped array of an .npy file; raises as np.load does."""
  array = np.load(path, mmap_mode="r", allow_pickle=False)
  if isinstance(array.base, mmap.mmap):
    _maps.add(array.base)
  return array


def drop_pages() -> None:
  """Drops the pages of all mapped arrays if their total size exceeds SMALL."""
  maps = list(_maps)
  if sum(map(len, maps)) > SMALL and hasattr(mmap, "MADV_DONTNEED"):
    for each in maps:
      each.madvise(mmap.MADV_DONTNEED)
