"""Keeps tables of rows next to the corpus: built once, then memory-mapped.

The end of a row depends on all rows before it, so it can't be computed from its
number. A table records it for each row; when the run is started again, only the
file's header is read.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable

import numpy as np

from maskedlm.data.corpus import memory_map
from maskedlm.runtime import output_files


def open_table(
  corpus, key, dtype, build: Callable[[], Iterable[np.ndarray]]
) -> np.ndarray:
  """Returns the table of `key`, an array [R] of dtype, built if necessary.

  It is kept in CORPUS/rows and memory-mapped, or held in memory if the folder
  can't be written.

  Args:
    corpus: store.Corpus.
    key: JSON-able values that, with the corpus, determine the table, including
      the version of the rule.
    dtype: dtype of a record.
    build: () -> the records in blocks, one of which is held at a time; called
      again if the file can't be written.
  """
  key = json.dumps([corpus.fingerprint, key])
  digest = hashlib.sha256(key.encode()).hexdigest()[:32]
  path = os.path.join(corpus.path, "rows", f"{digest}.npy")
  table = _load(path, dtype)
  if table is None:
    with contextlib.suppress(OSError):  # A read-only or a full disk.
      _save(path, dtype, build)
    table = _load(path, dtype)
    if table is None:
      table = np.concatenate([np.empty(0, dtype), *build()])
  return table


def chain(ends, first) -> np.ndarray:
  """Returns first, ends[first], ends[ends[first]], ... below len(ends).

  Each round doubles the chain in one gather, with jumps over as many links as
  are known, so n links take log2(n) rounds.

  Args:
    ends: int [n], ends[i] > i.
    first: the first link.
  """
  size = len(ends)
  jump = np.append(np.minimum(ends, size), size)
  links = np.array([first])
  while links[-1] < size:
    links = np.concatenate([links, jump[links]])
    jump = jump[jump]
  return links[links < size]


def places(edges, values) -> np.ndarray:
  """Returns np.searchsorted(edges, values, side="right") for sorted values.

  Searches for the edges among the values instead, as the values are many more.
  """
  if not len(values):
    return np.empty(0, np.int64)
  first, last = np.searchsorted(edges, values[[0, -1]], side="right")
  bounds = np.searchsorted(values, edges[first:last])
  counts = np.diff(bounds, prepend=0, append=len(values))
  return np.repeat(np.arange(first, last + 1), counts)


def _load(path, dtype) -> np.ndarray | None:
  """Returns the memory-mapped table; None if it is missing or damaged."""
  try:
    table = memory_map.map_array(path)
  except (OSError, ValueError, EOFError):
    return None
  # A plain array: indexing a np.memmap is several times as slow.
  return np.asarray(table) if table.dtype == dtype else None


def _save(path, dtype, build) -> None:
  """Writes the table, whole or not at all."""

  def write_header(file, size):  # Has the same length for any size.
    header = {
      "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
      "fortran_order": False,
      "shape": (size,),
    }
    np.lib.format.write_array_header_1_0(file, header)
    return file.tell()

  # Plain writes: a full disk would kill a writer through a memory map.
  with output_files.whole_file(path) as file:
    begin, size = write_header(file, 0), 0
    for block in build():
      file.write(block.tobytes())
      size += len(block)
    file.seek(0)
    assert write_header(file, size) == begin
