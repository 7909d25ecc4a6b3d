"""Pages that were read are returned to the system, and read again."""

import pathlib

import numpy as np
import pytest

from helpers import damage
from maskedlm.core.open_file import open_file
from maskedlm.data.corpus import memory_map

SIZE = 1 << 24


def resident():
  """Returns the MB of mapped pages in this process."""
  status = pathlib.Path("/proc/self/status")
  if not status.exists():
    pytest.skip("/proc is Linux's")
  lines = status.read_text().splitlines()
  return next(int(x.split()[1]) for x in lines if x.startswith("RssFile")) / 1e3


def mapped(path, dtype, size):
  with open_file(path) as file:
    return memory_map.map_vector(file, np.dtype(dtype), size, offset=128)


def test_pages_are_dropped_and_read_again(tmp_path, monkeypatch):
  values = np.random.default_rng(3).integers(0, 1 << 15, SIZE, np.uint16)
  np.save(tmp_path / "a.npy", values)
  array = mapped(tmp_path / "a.npy", "<u2", SIZE)
  before = resident()
  assert np.array_equal(array, values)
  assert resident() - before > 30  # Of 34 MB.
  memory_map.drop_pages()  # The file is small, so they stay.
  assert resident() - before > 30
  monkeypatch.setattr(memory_map, "SMALL", 1 << 20)
  memory_map.drop_pages()
  assert resident() - before < 5
  assert np.array_equal(array, values)


def test_deleted_and_empty_arrays_are_allowed(tmp_path, monkeypatch):
  monkeypatch.setattr(memory_map, "SMALL", 0)
  for size in (0, 7):
    np.save(tmp_path / "a.npy", np.arange(size))
    array = mapped(tmp_path / "a.npy", "<i8", size)
    memory_map.drop_pages()
    assert array.tolist() == list(range(size))
    del array
    memory_map.drop_pages()


@pytest.mark.parametrize("replace", [damage.folder, damage.loop, damage.fifo])
def test_what_is_no_file_is_an_error_at_once(tmp_path, replace):
  """Opening a named pipe would wait for a writer."""
  path = tmp_path / "a.npy"
  np.save(path, np.arange(7))
  replace(path)
  with pytest.raises(OSError, match=r"a\.npy"):
    open_file(path)
