"""The cache of blocks: never too large, shared, mended after a kill."""

import itertools
import os
import shutil
import subprocess
import sys
import types

import pytest

from maskedlm.core.errors import ConfigError
from maskedlm.data.corpus import block_cache


def blocks(folder):
  """Returns NAME -> bytes of the blocks on the disk."""
  return {
    str(path.relative_to(folder)): path.stat().st_size
    for path in folder.glob("*/*")
  }


def used(folder):
  return int((folder / "used").read_text())


def get(cache, name, size):
  return block_cache.read(cache, name, size=size, begin=0, end=size)


def test_the_blocks_used_longest_ago_are_removed(tmp_path, monkeypatch):
  clock = itertools.count(10**18, 10**9)
  monkeypatch.setattr(block_cache.time, "time_ns", lambda: next(clock))
  cache = block_cache.open_cache(tmp_path / "blocks", 100)
  for i in range(10):
    block_cache.write(cache, f"a/{i}", bytes([i]) * 10)
    os.utime(cache.folder / f"a/{i}", ns=(i, i))  # In 1970.
  assert sum(blocks(cache.folder).values()) == 100
  assert get(cache, "a/0", 10) == bytes(10)  # Now the one used last.
  # Nine tenths are left, less the 13 bytes that come: 7 blocks, 0 and 4 to 9.
  block_cache.write(cache, "b/0", bytes(13))
  kept = {"a/0", *(f"a/{i}" for i in range(4, 10)), "b/0"}
  assert blocks(cache.folder).keys() == kept
  assert get(cache, "a/3", 10) is None
  assert used(cache.folder) == 83
  # The same block again takes no more room.
  block_cache.write(cache, "b/0", bytes(20))
  assert sum(blocks(cache.folder).values()) == 90
  assert used(cache.folder) == 90


def test_a_part_of_a_block(tmp_path):
  cache = block_cache.open_cache(tmp_path, 100)
  block_cache.write(cache, "a/7", b"abcdefg")
  part = block_cache.read(cache, "a/7", size=7, begin=2, end=5)
  assert part == b"cde"
  # One that was cut, as by a power cut, is not there.
  (tmp_path / "a/7").write_bytes(b"abcdef")
  assert get(cache, "a/7", 7) is None


def test_a_total_that_a_killed_process_left_is_mended(tmp_path):
  cache = block_cache.open_cache(tmp_path, 100)
  block_cache.write(cache, "a/0", bytes(30))
  # Killed after it had noted a block of 60, and while it wrote that.
  (tmp_path / "used").write_text("90")
  (tmp_path / "a" / ".12.34").write_bytes(bytes(20))
  os.utime(tmp_path / "a" / ".12.34", ns=(0, 0))
  block_cache.write(cache, "a/1", bytes(40))
  assert blocks(tmp_path) == {"a/0": 30, "a/1": 40, "a/.12.34": 20}
  assert used(tmp_path) == 90
  block_cache.write(cache, "a/2", bytes(15))  # The rest goes first.
  assert blocks(tmp_path) == {"a/0": 30, "a/1": 40, "a/2": 15}
  (tmp_path / "used").write_text("")
  block_cache.write(cache, "a/3", bytes(5))
  assert used(tmp_path) == 90


def test_a_disk_without_room(tmp_path, monkeypatch):
  free = types.SimpleNamespace(free=10**9)
  monkeypatch.setattr(shutil, "disk_usage", lambda path: free)
  block_cache.open_cache(tmp_path, 10**9)
  with pytest.raises(ConfigError, match=r"corpus\.cache_gb=1\.5: .*1 GB more"):
    block_cache.open_cache(tmp_path, 3 * 10**9 // 2)


PROCESS = """
import os, pathlib, random, sys
from maskedlm.data.corpus import block_cache
cache = block_cache.open_cache(pathlib.Path(sys.argv[1]), 10_000)
draw = random.Random(int(sys.argv[2]))
for _ in range(400):
  i = draw.randrange(40)
  size = 300 + i
  data = block_cache.read(cache, f"a/{i}", size=size, begin=0, end=size)
  if data is None:
    block_cache.write(cache, f"a/{i}", bytes([i]) * size)
  else:
    assert data == bytes([i]) * size, i
  if i == 0:
    with block_cache.lock(cache):
      total = sum(f.stat().st_size for f in os.scandir(cache.folder / "a"))
    assert total <= 10_000, total
"""


def test_several_processes_share_a_folder(tmp_path):
  started = [
    subprocess.Popen([sys.executable, "-c", PROCESS, tmp_path, str(seed)])
    for seed in range(3)
  ]
  assert [process.wait(120) for process in started] == [0, 0, 0]
  total = sum(blocks(tmp_path).values())
  assert 8_000 < total <= 10_000
  assert used(tmp_path) == total
