"""Tables of rows: built once, kept beside the corpus, memory-mapped.

Where a row ends depends on all the rows before it, so it can't be computed
from its number. A table says it, with one record for each row: the next start
of the same run reads nothing but the file's header.
"""

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Callable, Iterable

import numpy as np


def open_table(
  corpus, key, dtype, build: Callable[[], tuple[int, Callable[[], Iterable]]]
) -> np.ndarray:
  """The table of `key`, built if need be: a memory-mapped array of dtype.

  It is kept in CORPUS/rows, or in memory if that can't be written.

  Args:
    corpus: store.Corpus.
    key: what determines the table besides the corpus, of JSON-able values,
      the version of the rule among them.
    dtype: of its records.
    build: () -> (number of records, a function that yields them in blocks).
  """
  key = json.dumps([corpus.fingerprint, key])
  digest = hashlib.sha256(key.encode()).hexdigest()[:32]
  path = os.path.join(corpus.path, "rows", f"{digest}.npy")
  table = _load(path, dtype)
  if table is None:
    size, blocks = build()
    with contextlib.suppress(OSError):  # A read-only or a full disk.
      _save(path, size, dtype, blocks())
    table = _load(path, dtype)
    if table is None:
      table = np.concatenate([np.empty(0, dtype), *blocks()])
  return table


def chain(ends, first) -> np.ndarray:
  """first, ends[first], ends[ends[first]], ... as far as there are ends.

  By doubling: each round finds as many links as are known, in one gather, with
  jumps over as many links: log2(n) rounds for n of them.
  """
  size = len(ends)
  jump = np.append(np.minimum(ends, size), size)
  links = np.array([first])
  while links[-1] < size:
    links = np.concatenate([links, jump[links]])
    jump = jump[jump]
  return links[links < size]


def _load(path, dtype) -> np.ndarray | None:
  """The memory-mapped table; None if there is none, or none that is whole."""
  try:
    table = np.load(path, mmap_mode="r", allow_pickle=False)
  except (OSError, ValueError, EOFError):
    return None
  # A plain array: indexing a np.memmap is several times as slow.
  return np.asarray(table) if table.dtype == dtype else None


def _save(path, size, dtype, blocks) -> None:
  """Writes the table whole or not at all, however many hosts do it at once."""
  os.makedirs(os.path.dirname(path), exist_ok=True)
  partial = f"{path}.{uuid.uuid4().hex}.partial"
  header = {
    "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
    "fortran_order": False,
    "shape": (size,),
  }
  try:
    # Plain writes: a full disk would kill a writer through a memory map.
    with open(partial, "xb") as file:
      np.lib.format.write_array_header_1_0(file, header)
      for block in blocks:
        file.write(block.tobytes())
      file.flush()
      os.fsync(file.fileno())
    os.replace(partial, path)
  finally:
    if os.path.exists(partial):
      os.remove(partial)
