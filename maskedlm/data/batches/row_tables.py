"""Keeps tables of rows next to the corpus: built once, then memory-mapped.

The end of a row depends on all rows before it, so it can't be computed from its
number. A table records it for each row. When the run is started again, the file
is compared with the checksum at its end, as a flipped bit would give other
batches, and built again if it differs.

CORPUS/rows/DIGEST.npy is an .npy vector, followed by a CRC-32 of its values and
of its header as 8 hexadecimal digits. The CRC begins with DIGEST, so that a
file which was renamed is found too. CRC-32 is the fastest of Python's checksums
(1.3 GB/s; SHA-256: 0.5), and finds every error within 32 bits.
"""

import contextlib
import functools
import hashlib
import io
import json
import os
import zlib
from collections.abc import Callable, Iterable

import numpy as np

from maskedlm.core.open_file import open_file
from maskedlm.data.corpus import integrity, memory_map
from maskedlm.runtime import output_files

_BLOCK = 1 << 20  # Bytes read at a time.
_CHECKSUM = 8  # Bytes at the end of a file.


def open_table(
  corpus, key, dtype, build: Callable[[], Iterable[np.ndarray]]
) -> np.ndarray:
  """Returns the table of `key`, an array [R] of dtype, built if necessary.

  It is kept in CORPUS/rows and memory-mapped, or held in memory if the folder
  can't be written. A file that is damaged, or from before there were checksums,
  is built again: that takes seconds, and gives the same table.

  Args:
    corpus: store.Corpus.
    key: JSON-able values that, with the corpus, determine the table, including
      the version of the rule.
    dtype: dtype of a record.
    build: () -> the records in blocks, one of which is held at a time; called
      again if the file can't be written.

  Raises:
    CorpusError: it had to be built, and the corpus is damaged.
  """
  key = json.dumps([corpus.fingerprint, key])
  digest = hashlib.sha256(key.encode()).hexdigest()[:32]
  path = os.path.join(corpus.path, "rows", f"{digest}.npy")
  table = _load(path, dtype, digest)
  if table is None:
    # A table made of damaged starts would stay, with a good checksum.
    integrity.check_starts(corpus.path, corpus.meta)
    with contextlib.suppress(OSError):  # A read-only or a full disk.
      _save(path, dtype, digest, build)
    table = _load(path, dtype, digest)
    if table is None:
      table = np.concatenate([np.empty(0, dtype), *build()])
  return table


def chain(ends, first) -> np.ndarray:
  """Returns first, ends[first], ends[ends[first]], ... below len(ends).

  Each round doubles the chain in one gather, with jumps over as many links as
  are known, so n links take log2(n) rounds. ends[i] > i.
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


def _load(path, dtype, digest: str) -> np.ndarray | None:
  with contextlib.suppress(OSError):
    stat = os.stat(path)
    identity = stat.st_ino, stat.st_size, stat.st_mtime_ns
    return read_table(path, dtype, digest, identity)
  return None


@functools.lru_cache(maxsize=64)  # A run opens a table several times.
def read_table(path, dtype, digest: str, identity: tuple) -> np.ndarray | None:
  """Returns the memory-mapped table of a file, or None if it is damaged.

  The checksum begins with `digest`, the name of the table. `identity` is that
  of the file: one that is replaced is read again.
  """
  del identity
  begin = len(_header(dtype, 0))
  with open_file(path) as file:
    num_bytes = os.fstat(file.fileno()).st_size - begin - _CHECKSUM
    size, rest = divmod(num_bytes, np.dtype(dtype).itemsize)
    header = _header(dtype, max(size, 0))
    if rest or file.read(begin) != header:
      return None
    checksum = zlib.crc32(digest.encode())
    for at in range(0, num_bytes, _BLOCK):
      block = file.read(min(_BLOCK, num_bytes - at))
      checksum = zlib.crc32(block, checksum)
    if file.read() == _hex(zlib.crc32(header, checksum)):
      return memory_map.map_vector(file, dtype, size, offset=begin)
  return None


def _save(path, dtype, digest: str, build) -> None:
  """Writes the table, whole or not at all.

  A folder, a named pipe or a link to nothing in its place is left alone.
  """
  if os.path.lexists(path) and not os.path.isfile(path):
    return
  output_files.clear_unfinished(os.path.dirname(path))
  # Plain writes: a full disk would kill a writer through a memory map.
  with output_files.whole_file(path) as file:
    file.write(_header(dtype, 0))
    size, checksum = 0, zlib.crc32(digest.encode())
    for block in build():
      content = block.tobytes()
      file.write(content)
      checksum = zlib.crc32(content, checksum)
      size += len(block)
    header = _header(dtype, size)
    file.write(_hex(zlib.crc32(header, checksum)))
    file.seek(0)
    file.write(header)


def _hex(checksum: int) -> bytes:
  return b"%08x" % checksum


def _header(dtype, size: int) -> bytes:
  """Returns the .npy header of a vector; it is equally long for any size."""
  header = io.BytesIO()
  fields = {
    "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
    "fortran_order": False,
    "shape": (size,),
  }
  np.lib.format.write_array_header_1_0(header, fields)
  return header.getvalue()
