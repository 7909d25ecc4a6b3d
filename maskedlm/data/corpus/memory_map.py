"""Files as arrays in memory: mapped, and given back to the system.

Below shards.py and tables.py. A page that was read once counts as the
process's memory (RSS) until the system needs it, so a trainer would seem to
grow as large as its corpus: Linux maps up to 2 MB for each row that is read.
`release` hands them back. They stay in the system's cache; reading one again
costs a page fault, and of a large corpus hardly one is read again soon, as
rows are drawn at random from all over it.
"""

import mmap
import weakref

import numpy as np

SMALL = 1 << 29  # Bytes of files that may stay.
_maps = weakref.WeakSet()  # Of all arrays that are still in use.


def map_array(path: str) -> np.ndarray:
  """The array of an .npy file, mapped; raises as np.load does."""
  array = np.load(path, mmap_mode="r", allow_pickle=False)
  if isinstance(array.base, mmap.mmap):
    _maps.add(array.base)
  return array


def drop_pages() -> None:
  """Gives back all pages of all arrays, if the files are large together."""
  maps = list(_maps)
  if sum(map(len, maps)) > SMALL and hasattr(mmap, "MADV_DONTNEED"):
    for each in maps:
      each.madvise(mmap.MADV_DONTNEED)
