"""A table of rows that is damaged is built again, and never read."""

import os
import shutil
import types

import numpy as np
import pytest

from helpers import damage
from maskedlm.core.errors import CorpusError
from maskedlm.data.batches import row_tables, text_rows
from maskedlm.data.corpus import integrity, store
from maskedlm.runtime import output_files

DTYPE = np.dtype([("token", "<i8"), ("num_tokens", "<i4")])
ROWS = np.array([(3 * i, i % 5) for i in range(37)], DTYPE)


@pytest.fixture
def opened(tmp_path, monkeypatch):
  """Returns (open, its file); open returns (table, how often it was built)."""
  monkeypatch.setattr(output_files, "sync", lambda file: file.flush())  # Slow.
  corpus = types.SimpleNamespace(
    path=str(tmp_path), fingerprint="f" * 64, meta={"files": {}}
  )

  def open_(key="a", dtype=DTYPE, rows=ROWS):
    row_tables.read_table.cache_clear()  # As in another process.
    built = []

    def build():
      built.append(key)
      yield rows[:20]
      yield rows[20:]

    table = row_tables.open_table(corpus, key, dtype, build)
    assert type(table) is np.ndarray and table.dtype == dtype
    assert table.tolist() == rows.tolist()
    return len(built)

  assert open_() == 1
  (file,) = (tmp_path / "rows").iterdir()
  assert open_() == 0
  return open_, file


def test_flipped_bits_are_found(opened):
  open_, file = opened
  whole = file.read_bytes()
  assert len(whole) == 128 + 37 * 12 + 8
  for place in range(0, len(whole), 3):
    content = bytearray(whole)
    content[place] ^= 1 << place % 8
    file.write_bytes(content)
    assert open_() == 1
    assert file.read_bytes() == whole
    assert open_() == 0


@pytest.mark.parametrize("spoil", [*damage.CONTENT, *damage.REPLACED])
def test_other_damage_is_found(opened, spoil):
  open_, file = opened
  spoil(file)
  assert open_() > 0
  # What isn't a file is left alone.
  assert open_() == 0 or not os.path.isfile(file)


def test_shorter_files_are_found(opened):
  open_, file = opened
  whole = file.read_bytes()
  for size in range(0, len(whole), 7):
    file.write_bytes(whole[:size])
    assert open_() == 1


def test_a_table_under_the_name_of_another_is_found(opened):
  open_, file = opened
  assert open_("b", rows=ROWS[::-1]) == 1
  (other,) = set(file.parent.iterdir()) - {file}
  other.write_bytes(file.read_bytes())
  assert open_("b", rows=ROWS[::-1]) == 1


def test_a_full_disk_leaves_no_partial_file(opened, monkeypatch):
  def full(file):
    raise OSError(28, "No space left on device")

  open_, file = opened
  monkeypatch.setattr(output_files, "sync", full)
  assert open_("b") > 0
  assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("replace", [damage.file, damage.loop, damage.fifo])
def test_a_folder_that_cannot_be_written(opened, replace):
  open_, file = opened
  replace(file.parent)
  assert open_() > 0
  assert not file.parent.is_dir() and os.path.lexists(file.parent)


def test_no_table_is_made_of_damaged_starts(tmp_path, tiny):
  """It would be kept, and used once the corpus is repaired."""
  path = shutil.copytree(tiny[1], tmp_path / "corpus")
  corpus = store.open_corpus(path)
  for name in ("train-00000.sentences.npy", "heldout-00000.documents.npy"):
    shutil.rmtree(path / "rows", ignore_errors=True)
    whole = (path / name).read_bytes()
    damage.flip(path / name)
    with pytest.raises(CorpusError, match=f"{name} is damaged"):
      text_rows.open_document_table(corpus, "train", length=16)
    assert not (path / "rows").exists()
    (path / name).write_bytes(whole)
  assert len(text_rows.open_document_table(corpus, "train", length=16))


def test_rows_that_cannot_be_read_are_those_of_damaged_starts(tmp_path, tiny):
  path = shutil.copytree(tiny[1], tmp_path / "corpus")
  meta = store.open_corpus(path).meta
  with pytest.raises(IndexError), integrity.reading_rows(path, meta):
    _ = [][1]
  damage.flip(path / "train-00000.sentences.npy")
  with (
    pytest.raises(CorpusError, match=r"sentences\.npy is damaged"),
    integrity.reading_rows(path, meta),
  ):
    _ = [][1]
