"""Keeps blocks of files on this host's disk, up to a given number of bytes.

Each block is a file FOLDER/KEY/NUMBER, whose modification time is that of its
last use, to the minute; the ones that were used longest ago are removed. All
state is in the folder, so that several processes may share it: a lock is held
while a block is written, and the total is in the file `used`. A killed process
may leave that total too high, never too low; it is counted again when blocks
are removed.
"""

import contextlib
import os
import pathlib
import shutil
import threading
import time
from typing import NamedTuple

from maskedlm.core.counts import sized
from maskedlm.core.errors import ConfigError
from maskedlm.core.open_file import open_file
from maskedlm.runtime import output_files

_MINUTE = 60 * 10**9  # Nanoseconds; noting each use would write to the disk.
_LEFT_SHARE = 0.9  # Of cache.most, when blocks are removed.


class Cache(NamedTuple):
  """A folder of blocks."""

  folder: pathlib.Path
  most: int  # Bytes.


def open_cache(folder: pathlib.Path, most: int) -> Cache:
  """Returns the cache in a folder, which is made if it is missing.

  Raises:
    ConfigError: the disk has no room for `most` bytes.
    OSError: the folder can't be written.
  """
  cache = Cache(folder, most)
  folder.mkdir(parents=True, exist_ok=True)
  with lock(cache):
    used = _used(cache)
    if used > most:
      used = _make_room(cache, 0)
    _set_used(cache, used)
  free = shutil.disk_usage(folder).free
  if most - used > free:
    raise ConfigError(
      f"corpus.cache_gb={most / 1e9:g}: {folder} holds {sized(used)}, and "
      f"has room for {sized(free)} more. Lower corpus.cache_gb, make "
      "room, or set XDG_CACHE_HOME to a folder that has it."
    )
  return cache


def read(
  cache: Cache, name: str, *, size: int, begin: int, end: int
) -> bytes | None:
  """Returns bytes begin to end - 1 of a block KEY/NUMBER; None without it.

  A block of another size than `size` was cut by a power cut.
  """
  with contextlib.suppress(OSError):  # Else the block is fetched again.
    # Opening a named pipe would wait for its writer.
    file = os.open(f"{cache.folder}/{name}", os.O_RDONLY | os.O_NONBLOCK)
    try:
      status, now = os.fstat(file), time.time_ns()
      if status.st_size == size:
        if now - status.st_mtime_ns > _MINUTE:
          os.utime(file, ns=(now, now))
        return os.pread(file, end - begin, begin)
    finally:
      os.close(file)
  return None


def write(cache: Cache, name: str, data: bytes) -> None:
  """Adds a block, or replaces it; removes others if there is no room for it.

  Raises:
    OSError: the folder can't be written.
  """
  path = cache.folder / name
  with lock(cache):
    used = _used(cache)
    with contextlib.suppress(FileNotFoundError):
      used -= path.stat().st_size
      path.unlink()
    if used + len(data) > cache.most:
      used = _make_room(cache, len(data))
    _set_used(cache, used + len(data))
    path.parent.mkdir(exist_ok=True)
    # Where the file system has no locks, another thread may be here, too.
    unfinished = path.with_name(f".{os.getpid()}.{threading.get_ident()}")
    unfinished.write_bytes(data)
    with contextlib.suppress(FileNotFoundError):
      unfinished.replace(path)


def lock(cache: Cache):
  """Returns the lock that is held while blocks are written, for `with`."""
  return output_files.lock(cache.folder / "lock", on_wait=lambda: None)


def _used(cache: Cache) -> int:
  """Returns the bytes of all blocks, as noted, or counted if that fails."""
  try:
    with open_file(cache.folder / "used") as file:
      return int(file.read())
  except (OSError, ValueError):
    return sum(size for _, size, _ in _blocks(cache))


def _set_used(cache: Cache, used: int) -> None:
  # Written over: a file that is emptied first takes a millisecond on ext4.
  flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK
  file = os.open(cache.folder / "used", flags, 0o666)
  try:
    os.pwrite(file, b"%20d\n" % used, 0)
  finally:
    os.close(file)


def _make_room(cache: Cache, size: int) -> int:
  """Removes the blocks used longest ago; returns the bytes of the others."""
  blocks = sorted(_blocks(cache))
  total = sum(size for _, size, _ in blocks)
  for _, block_size, path in blocks:
    if total <= max(_LEFT_SHARE * cache.most - size, 0):
      break
    os.unlink(path)
    total -= block_size
  return total


def _blocks(cache: Cache) -> list[tuple[int, int, str]]:
  """Returns (time of the last use, bytes, path) of each block."""
  blocks = []
  for folder in os.scandir(cache.folder):
    if folder.is_dir(follow_symlinks=False):
      for file in os.scandir(folder):
        status = file.stat(follow_symlinks=False)
        blocks.append((status.st_mtime_ns, status.st_size, file.path))
  return blocks
