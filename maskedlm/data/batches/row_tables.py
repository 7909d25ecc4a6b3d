"""Tables of rows: built once, kept beside the corpus, memory-mapped.

Where a row ends depends on all the rows before it, so it can't be computed
from its number. A table says it, with one record for each row: the next start
of the same run reads nothing but the file's header.
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
  """The table of `key`, built if need be: a memory-mapped array of dtype.

  It is kept in CORPUS/rows, or in memory if that can't be written.

  Args:
    corpus: store.Corpus.
    key: what determines the table besides the corpus, of JSON-able values,
      the version of the rule among them.
    dtype: of its records.
    build: () -> the records, in blocks, of which only one is held at a time;
      it is called again where they can't be kept.
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


def places(edges, values) -> np.ndarray:
  """np.searchsorted(edges, values, side="right"), where the values increase.

  Edges are looked for among the values, which are many more, not the reverse.
  """
  if not len(values):
    return np.empty(0, np.int64)
  first, last = np.searchsorted(edges, values[[0, -1]], side="right")
  bounds = np.searchsorted(values, edges[first:last])
  counts = np.diff(bounds, prepend=0, append=len(values))
  return np.repeat(np.arange(first, last + 1), counts)


def _load(path, dtype) -> np.ndarray | None:
  """The memory-mapped table; None if there is none, or none that is whole."""
  try:
    table = memory_map.map_array(path)
  except (OSError, ValueError, EOFError):
    return None
  # A plain array: indexing a np.memmap is several times as slow.
  return np.asarray(table) if table.dtype == dtype else None


def _save(path, dtype, build) -> None:
  """Writes the table whole or not at all."""

  def write_header(file, size):  # Of the same length for any size.
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
