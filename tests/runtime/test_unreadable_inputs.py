"""Inputs that a disk can't read now are StorageError (74): a retry may help."""

import pathlib
import sys
from collections import Counter

import pytest

from maskedlm.core.errors import StorageError
from maskedlm.data.labelled import lines, text_lines
from maskedlm.data.sources import files
from maskedlm.data.tokenizers.tokenizer import load_tokenizer
from maskedlm.inference.plots import isotropy, training_curves
from maskedlm.inference.word_senses import data
from maskedlm.interop.huggingface import tensors
from maskedlm.runtime import output_files


def _open_npz(path):
  with output_files.open_npz(path, made_by="x"):
    pass


READERS = {
  "labelled": lambda path: list(lines.read_lines(path)),
  "head": lines.read_head,
  "texts": lambda path: list(text_lines.read_lines(str(path), Counter())),
  "source": lambda path: list(files.read_blocks(str(path))),
  "tokenizer": load_tokenizer,
  "table": isotropy.read_table,
  "senses": lambda path: list(data.read_sentences(str(path))),
  "npz": _open_npz,
}


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/mem")
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_an_error_of_the_disk(read, tmp_path):
  path = tmp_path / "in.json"
  path.symlink_to("/proc/self/mem")  # A file whose first byte is EIO.
  with pytest.raises(StorageError, match=r"in\.json can't be read .*output"):
    read(path)


def test_curves(tmp_path):
  (tmp_path / "metrics.jsonl").symlink_to("/proc/self/mem")
  with pytest.raises(StorageError, match=r"metrics\.jsonl can't be read"):
    training_curves.read_run(str(tmp_path))


def test_tensors(monkeypatch, tmp_path):
  path = tmp_path / tensors.FILE
  path.write_bytes(b"")

  def fails(path):
    raise OSError(116, "Stale file handle")

  monkeypatch.setattr(tensors, "open_file", fails)
  with (
    pytest.raises(StorageError, match="Stale file handle"),
    tensors.open_tensors(tmp_path),
  ):
    pass


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_wrong_name_is_not_temporary(read, tmp_path):
  with pytest.raises(ValueError, match="absent") as caught:
    read(pathlib.Path(tmp_path / "absent"))
  assert caught.value.exit_code == 2
