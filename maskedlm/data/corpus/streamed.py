"""Reads the tokens of a corpus at an address in place, through a cache.

Everything else of the corpus, about a tenth of its bytes, is copied to this
host's disk, which holds at most corpus.cache_gb of the tokens (block_cache.py).
They are read in blocks of 64 KB, each of which is compared with its SHA-256
(manifest.HASHES): when it comes from the address, and when a process finds it
in the cache for the first time. The rows of a step are drawn from all over a
corpus, so almost each of them is in a block of its own; the blocks of a batch
that are missing are requested together.
"""

import bisect
import contextlib
import hashlib
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.core.counts import sized
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.core.open_file import open_file
from maskedlm.data.corpus import (
  block_cache,
  download,
  integrity,
  manifest,
  memory_map,
  shards,
  store,
)
from maskedlm.runtime import buckets, output_files, storage_errors

AT_ONCE = 64  # Blocks that a thread requests together, and holds in memory.


class File(NamedTuple):
  """A file of tokens."""

  name: str
  key: str  # Of its blocks in the cache.
  size: int  # Bytes.
  first: int  # Number of its first block; they are counted over all files.


class Source(NamedTuple):
  """The blocks of all files of tokens of a corpus."""

  address: str
  files: tuple[File, ...]
  block: int  # Bytes.
  hashes: np.ndarray  # [blocks * DIGEST] uint8, memory-mapped.
  checked: np.ndarray  # [blocks] bool: whether the cached one was compared.
  cache: block_cache.Cache


class Tokens:
  """The tokens of a split, or a range of them: a vector to index and slice."""

  def __init__(self, source: Source, dtype, starts, firsts, begin: int, end):
    """Makes the vector of the tokens begin to end - 1 of a split.

    `starts`, int64 [files + 1], are each file's first token, and their number;
    `firsts`, int64 [files], the numbers of the files' first blocks.
    """
    self.dtype = dtype
    self._source, self._starts, self._firsts = source, starts, firsts
    self._begin, self._end = begin, end

  def __len__(self) -> int:
    return self._end - self._begin

  def __getitem__(self, index):
    """Returns the Tokens of a slice, or an array of those at `index`."""
    if isinstance(index, slice):
      begin, end, _ = index.indices(len(self))
      begin, end = (self._begin + x for x in (begin, max(begin, end)))
      same = self._source, self.dtype, self._starts, self._firsts
      return Tokens(*same, begin, end)
    index = np.asarray(index, np.int64)
    if index.size and not 0 <= index.min() <= index.max() < len(self):
      raise IndexError(f"{index.min()}..{index.max()} is not in {len(self)}")
    return self._take(self._begin + index.ravel()).reshape(index.shape)

  def _take(self, place: np.ndarray) -> np.ndarray:
    """Returns the tokens at places [n] of the split."""
    file_index = np.searchsorted(self._starts, place, side="right") - 1
    size = self.dtype.itemsize
    byte = shards.HEADER + (place - self._starts[file_index]) * size
    number, byte = np.divmod(byte, self._source.block)
    number += self._firsts[file_index]
    order = np.argsort(number, kind="stable")
    number, byte = number[order], byte[order]
    numbers, begins = np.unique(number, return_index=True)
    values = np.empty(len(place), self.dtype)
    if not len(place):
      return values
    low = np.minimum.reduceat(byte, begins)
    high = np.maximum.reduceat(byte, begins) + size
    ends = np.append(begins[1:], len(place))
    for i, data in _read(self._source, numbers, low, high):
      here = slice(begins[i], ends[i])
      tokens = np.frombuffer(data, self.dtype)
      values[order[here]] = tokens[(byte[here] - low[i]) // size]
    return values


def _read(source: Source, numbers, low, high) -> Iterator[tuple[int, bytes]]:
  """Yields (i, bytes low[i] to high[i] - 1 of block numbers[i]), unordered."""
  missing = []
  for i, number in enumerate(numbers):
    data = _find_cached(source, number, int(low[i]), int(high[i]))
    if data is None:
      missing.append(i)
    else:
      yield i, data
  for begin in range(0, len(missing), AT_ONCE):
    batch = missing[begin : begin + AT_ONCE]
    blocks = _fetch(source, [int(numbers[i]) for i in batch])
    for i, data in zip(batch, blocks, strict=True):
      yield i, data[low[i] : high[i]]


def _find_cached(source: Source, number, low: int, high: int) -> bytes | None:
  """Returns bytes of a block from the cache; None if it is not there."""
  name, size = _cache_entry(source, number)
  if source.checked[number]:
    return block_cache.read(source.cache, name, size=size, begin=low, end=high)
  whole = block_cache.read(source.cache, name, size=size, begin=0, end=size)
  if whole is None or not _matches_hash(source, number, whole):
    return None
  source.checked[number] = True
  return whole[low:high]


def _fetch(source: Source, numbers: Sequence[int]) -> list[bytes]:
  """Returns blocks from the address, and adds them to the cache."""
  fs, root = buckets.filesystem(source.address)
  blocks: dict[int, bytes] = {}

  def read() -> None:
    left = [number for number in numbers if number not in blocks]
    spans = [_span(source, number) for number in left]
    names, begins, ends = map(list, zip(*spans, strict=True))
    names = [f"{root}/{name}" for name in names]
    failed = None
    parts = fs.cat_ranges(names, begins, ends)
    for number, begin, end, data in zip(left, begins, ends, parts, strict=True):
      if isinstance(data, bytes) and len(data) == end - begin:
        if not _matches_hash(source, number, data):
          raise _damaged(source, number)
        blocks[number] = data
      elif _is_of_other_size(source, number):
        raise _damaged(source, number)
      elif isinstance(data, bytes):
        failed = OSError(f"{len(data)} bytes came instead of {end - begin}")
      else:
        failed = data
    if failed:
      raise failed

  with storage_errors.bucket_errors(source.address):
    buckets.retried(source.address, read)
  with _cache_errors(source.cache.folder):
    for number, data in blocks.items():
      block_cache.write(source.cache, _cache_entry(source, number)[0], data)
      source.checked[number] = True
  return [blocks[number] for number in numbers]


def _file(source: Source, number: int) -> File:
  at = bisect.bisect_right(source.files, number, key=lambda file: file.first)
  return source.files[at - 1]


def _span(source: Source, number: int) -> tuple[str, int, int]:
  """Returns the name of a block's file, its first byte, and the one after."""
  file = _file(source, number)
  begin = (number - file.first) * source.block
  return file.name, begin, min(begin + source.block, file.size)


def _cache_entry(source: Source, number: int) -> tuple[str, int]:
  """Returns a block's name in the cache, and its bytes."""
  file, (_, begin, end) = _file(source, number), _span(source, number)
  return f"{file.key}/{number - file.first}", end - begin


def _matches_hash(source: Source, number: int, data: bytes) -> bool:
  at = number * shards.DIGEST
  digest = source.hashes[at : at + shards.DIGEST]
  return hashlib.sha256(data).digest() == digest.tobytes()


def _is_of_other_size(source: Source, number: int) -> bool:
  """Returns whether a block's file was cut, or replaced; False if unknown."""
  fs, root = buckets.filesystem(source.address)
  file = _file(source, number)
  with contextlib.suppress(Exception):  # Each file system raises its own.
    return fs.size(f"{root}/{file.name}") not in (None, file.size)
  return False


def _damaged(source: Source, number: int) -> ConfigError:
  name, begin, end = _span(source, number)
  return ConfigError(
    f"{source.address}/{name}: bytes {begin:,} to {end:,} differ from their "
    f"SHA-256 in {manifest.HASHES}: the file is damaged, or was changed "
    "meanwhile. Copy the corpus there again."
  )


@contextlib.contextmanager
def _cache_errors(folder: pathlib.Path) -> Iterator[None]:
  try:
    yield
  except OSError as error:
    raise storage_errors.as_user_error(
      f"{error.filename or folder} can't be written "
      f"({storage_errors.reason(error)})",
      error,
      if_wrong="set XDG_CACHE_HOME to a folder that can be.",
      if_temporary="then run the same command again, which continues; or "
      "lower corpus.cache_gb, or set XDG_CACHE_HOME to another folder.",
    ) from error


# Opening


def open_corpus(
  path: str | os.PathLike, *, cache_gb: float | None, log: download.Log
) -> store.Corpus:
  """Opens a corpus in a folder or at an address, and logs how it is read.

  Args:
    cache_gb: GB of tokens, of all corpora at addresses, on the disk; None
      copies them whole. A whole copy that is there already is used either way.

  Raises:
    CorpusError: see store.open_corpus.
    ConfigError: the address has no corpus, may not be read or has no parts of
      files; the corpus is older than their hashes; or the disk can't be used.
    StorageError: the address can't be read, or the disk written, at present.
  """
  if not buckets.is_address(path):
    return store.open_corpus(buckets.folder(path))
  address = buckets.normalize(path)
  text = download.read_meta(address)
  files = download.files_of(address, text)
  whole = download.place(address, text)
  if cache_gb is None or whole.exists():
    download.copy(address, text, files, whole, log=log)
    log(f"corpus: {address} is read from its copy, {whole}")
    return store.open_corpus(whole)
  if manifest.HASHES not in files:
    raise ConfigError(
      f"corpus.cache_gb={cache_gb:g}: {address} was prepared by an older "
      "maskedlm, without the hashes by which parts of its files are checked: "
      f"{_COPY_WHOLE}, or prepare it again."
    )
  _check_ranges(address)
  names = {n for n in files if n.endswith(shards.TOKENS)}
  other_files = {name: files[name] for name in files.keys() - names}
  folder = whole.with_name(f"{whole.name}.streamed")
  place = output_files.cache_dir("blocks")
  with _cache_errors(place):
    cache = block_cache.open_cache(place, int(cache_gb * 1e9))
  log(
    f"corpus: {address} is streamed: of its {_size(files, names)} of "
    f"tokens, {place} holds {cache_gb:g} GB at most; the rest of it, "
    f"{_size(files, other_files)}, is copied to {folder}"
  )
  download.copy(address, text, other_files, folder, log=log)
  meta = integrity.read_meta(str(folder))
  source = _open_source(address, folder, meta, cache)
  tokens = {split: _tokens(source, meta, split) for split in shards.SPLITS}
  return store.open_corpus(folder, tokens)


_COPY_WHOLE = "leave it out, which copies the corpus whole"


def _size(files: Mapping[str, Mapping], names: Iterable[str]) -> str:
  return sized(sum(files[name]["bytes"] for name in names))


def _check_ranges(address: str) -> None:
  """Raises ConfigError for a web server that sends whole files only."""
  fs, root = buckets.filesystem(address)
  with storage_errors.bucket_errors(address):
    data = fs.cat_file(f"{root}/meta.json", start=1, end=2)
  if len(data) != 1:
    raise ConfigError(
      f"{address}: the server sends no parts of files (HTTP ranges), which "
      f"corpus.cache_gb needs: {_COPY_WHOLE}, or use another server."
    )


def _open_source(
  address: str, folder: pathlib.Path, meta: Mapping, cache: block_cache.Cache
) -> Source:
  """Returns the Source of a corpus whose other files are in a folder."""
  block, recorded = meta["block_bytes"], meta["files"]
  names = manifest.token_files(meta["splits"])
  sizes = [recorded[name]["bytes"] for name in names]
  firsts = shards.offsets([-(-size // block) for size in sizes])
  num_blocks = int(firsts[-1])
  if recorded[manifest.HASHES]["bytes"] != num_blocks * shards.DIGEST:
    raise CorpusError(
      f"{address}: {manifest.HASHES} has {recorded[manifest.HASHES]['bytes']} "
      f"bytes, expected {num_blocks * shards.DIGEST}; {shards.REMEDY}"
    )
  files = tuple(
    # Of two corpora with the same file, each block is held once.
    File(name, f"{recorded[name]['sha256'][:32]}-{block}", size, int(first))
    for name, size, first in zip(names, sizes, firsts[:-1], strict=True)
  )
  with open_file(folder / manifest.HASHES) as file:
    size = num_blocks * shards.DIGEST
    hashes = memory_map.map_vector(file, np.dtype(np.uint8), size, offset=0)
  checked = np.zeros(num_blocks, bool)
  return Source(address, files, block, hashes, checked, cache)


def _tokens(source: Source, meta: Mapping, split: str) -> Tokens:
  """Returns the tokens of a split."""
  counts = [shard["tokens"] for shard in meta["splits"][split]["shards"]]
  names = [shards.tokens_file(split, index) for index in range(len(counts))]
  files = [file for file in source.files if file.name in names]
  dtype = np.dtype(meta["token_dtype"])
  for file, count in zip(files, counts, strict=True):
    if file.size != shards.HEADER + count * dtype.itemsize:
      raise CorpusError(
        f"{source.address}: {file.name} has {file.size} bytes in meta.json, "
        f"and {count} tokens; {shards.REMEDY}"
      )
  firsts = np.array([file.first for file in files], np.int64)
  starts = shards.offsets(counts)
  return Tokens(source, dtype, starts, firsts, 0, int(starts[-1]))
