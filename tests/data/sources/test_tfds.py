"""TFDS datasets as sources, opened without TensorFlow."""

import os
import shutil
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from helpers.read_source import INVALID, read, read_pieces
from helpers.repository import ROOT
from helpers.tfrecords import as_tfrecord
from maskedlm.core.errors import CorpusError
from maskedlm.data.sources import reader


@pytest.fixture(scope="module")
def tfds_dir(tmp_path_factory):
  """A dataset of two splits, prepared without TensorFlow."""
  import tensorflow_datasets as tfds

  class OddNews(tfds.core.GeneratorBasedBuilder):
    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
      features = {"text": tfds.features.Text(), "id": np.int64}
      return tfds.core.DatasetInfo(
        builder=self,
        features=tfds.features.FeaturesDict(features),
        disable_shuffling=True,
      )

    def _split_generators(self, dl_manager):
      return {
        "train": self._generate_examples(4),
        "test": self._generate_examples(1),
      }

    def _generate_examples(self, count):
      texts = [
        b"One.\r\nTwo.\n\nThree.",
        "Über 😀.".encode(),
        b"Bad \xff and NUL\0.",
        b" ",
      ]
      for index in range(count):
        yield index, {"text": texts[index], "id": index}

  path = tmp_path_factory.mktemp("tfds")
  builder = OddNews(data_dir=path)
  builder.download_and_prepare(file_format="array_record")
  return path


@pytest.fixture(scope="module")
def tfrecord_dir(tfds_dir, tmp_path_factory):
  """The same dataset in TFDS's default format."""
  path = tmp_path_factory.mktemp("tfrecord")
  shutil.copytree(tfds_dir, path, dirs_exist_ok=True)
  as_tfrecord(path)
  assert not list(path.rglob("*array_record*"))
  return path


def test_tfrecord_is_read_as_array_record(tfds_dir, tfrecord_dir):
  for name in ("odd_news", "odd_news:test", "odd_news:1.0.0:train[1:3]"):
    source = f"tfds:{name}@{tfrecord_dir}"
    assert read(source) == read(f"tfds:{name}@{tfds_dir}")
  pieces, *found = read_pieces(
    f"tfds:odd_news@{tfrecord_dir}", num_bytes=2 * reader.RECORD_BYTES
  )
  assert len(pieces) > 1
  assert tuple(found) == read(f"tfds:odd_news@{tfds_dir}")


def test_damage_of_tfrecord_is_reported_in_a_line(tfrecord_dir, tmp_path):
  shutil.copytree(tfrecord_dir, tmp_path, dirs_exist_ok=True)
  [path] = tmp_path.rglob("*train.tfrecord-*")
  content = path.read_bytes()
  path.write_bytes(content[:-3] + b"???")
  with pytest.raises(CorpusError, match=r"record 4 .*\(.*checksum.*damaged"):
    read(f"tfds:odd_news@{tmp_path}")


def test_tfds(tfds_dir):
  found, report = read(f"tfds:odd_news@{tfds_dir}")
  assert found == [
    ["One.", "Two.", "", "Three."],
    ["Über 😀."],
    ["Bad \ufffd and NUL."],
  ]
  assert report == {
    "bytes read": 18 + 11 + 15 + 1,
    "documents": 3,
    "documents of a single line": 2,
    "lines": 5,
    "characters": 4 + 4 + 6 + 7 + 14,
    INVALID: 1,
    "NUL characters removed": 1,
    "empty documents dropped": 1,
  }


def test_no_module_of_the_current_folder_is_imported(tfds_dir, tmp_path):
  """A dataset names the modules of its features; `python -c` looks here."""
  shutil.copytree(tfds_dir, tmp_path / "data")
  [path] = (tmp_path / "data").rglob("features.json")
  text = path.read_text()
  path.write_text(text.replace("tensorflow_datasets.core.features.t", "evil.t"))
  assert path.read_text() != text
  (tmp_path / "evil.py").write_text("open('imported', 'w')\n")
  code = (
    "from maskedlm.data.sources import tfds\n"
    "tfds.open_records('tfds:odd_news@data')"
  )
  ended = subprocess.run(
    [sys.executable, "-c", code],
    cwd=tmp_path,
    check=False,
    capture_output=True,
    env={**os.environ, "PYTHONPATH": str(ROOT)},
    text=True,
  )
  assert "TfdsError" in ended.stderr and "evil" in ended.stderr
  assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize(
  "name, text_field, message",
  [
    ("odd_newz", "text", "odd_newz.*there is nothing: correct the name"),
    ("odd_news:dev", "text", r"Unknown split 'dev'.*\['train', 'test'\]"),
    ("odd_news:2.0.0", "text", "2.0.0.*there is 1.0.0: correct"),
    ("glue/mrpd", "text", "mrpd.*correct the name"),
    ("odd_news", "test", 'did you mean "text"'),
  ],
)
def test_tfds_errors(tfds_dir, name, text_field, message):
  with pytest.raises(CorpusError, match=message) as caught:
    reader.read_documents(
      f"tfds:{name}@{tfds_dir}", text_field=text_field, report=Counter()
    )
  assert "\n" not in str(caught.value) and len(str(caught.value)) < 500
  with pytest.raises(CorpusError, match=r"holds no text.*'id': 4"):
    read(f"tfds:odd_news@{tfds_dir}", text_field="id")


def test_sources_import_neither_jax_nor_tensorflow(tfrecord_dir):
  script = f"""
import collections, sys
from maskedlm.data.sources import reader
source = "tfds:odd_news@{tfrecord_dir}"
report = collections.Counter()
list(reader.read_documents(source, text_field="text", report=report))
print([m for m in ("jax", "tensorflow", "torch", "flax") if m in sys.modules])
"""
  out = subprocess.run(
    [sys.executable, "-c", script], capture_output=True, text=True, check=True
  )
  assert out.stdout.strip() == "[]"
