"""Sources at addresses: hf://, by the real library and a stand-in hub."""

import gzip
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import HfFileSystem, constants

from helpers import stand_in_hub
from maskedlm.core.errors import ConfigError, CorpusError, StorageError
from maskedlm.data.sources import reader
from maskedlm.runtime import buckets

TEXTS = [[f"a line of text {i}", f"the text {i}"] for i in range(3)]
DATA = "hf://datasets/acme/texts"


@pytest.fixture
def site(tmp_path, monkeypatch):
  monkeypatch.setattr("time.sleep", lambda seconds: None)
  HfFileSystem.clear_instance_cache()
  buckets.filesystem.cache_clear()
  with stand_in_hub.serve() as site:
    site.use(monkeypatch, tmp_path / "cache")
    files = {"data/notes.md": b"not read", "lines/._0.txt": b"hidden"}
    files["data/.old/3.parquet"] = b"hidden"
    for i, texts in enumerate(TEXTS):
      pq.write_table(pa.table({"text": texts}), tmp_path / "x.parquet")
      files[f"data/{i}.parquet"] = (tmp_path / "x.parquet").read_bytes()
      files[f"fasta/{i}.fa"] = f">{i}\nACGT\n".encode()
      files[f"lines/{i}.txt.gz"] = gzip.compress("\n".join(texts).encode())
    site.add("datasets/acme/texts", files)
    yield site


def read(source):
  found = reader.read_documents(source, text_field="text", report=Counter())
  return [line for document in found for line in document]


@pytest.mark.parametrize(
  "source",
  [
    f"parquet:{DATA}/data/*.parquet",
    f"parquet:{DATA}/data",
    f"parquet:{DATA}@main/data/0.parquet,{DATA}/data/[12].parquet",
    f"lines:{DATA}/lines",
  ],
)
def test_the_files_of_a_data_set_are_read_where_they_are(source, site):
  assert sorted(read(source)) == sorted(line for text in TEXTS for line in text)


@pytest.mark.parametrize(
  ("fault", "source", "error", "message"),
  [
    ("", f"parquet:{DATA}/none/*", CorpusError, "matches no file"),
    ("", f"parquet:{DATA}s/*", ConfigError, "repository not found"),
    ("offline", f"parquet:{DATA}/data", ConfigError, "HF_HUB_OFFLINE"),
    (403, f"parquet:{DATA}/data", ConfigError, "this machine's account may"),
    (503, f"parquet:{DATA}/data/0.parquet", StorageError, "wait, then run"),
    ("cut", f"parquet:{DATA}/data/0.parquet", CorpusError, "fetch it again"),
  ],
)
def test_refusals(fault, source, error, message, site, monkeypatch):
  if fault == "offline":
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
  elif fault == "cut":
    files = site.repos["datasets/acme/texts"]
    files.commit({"data/0.parquet": b"PAR1"})
  elif fault:
    site.failing = lambda method, path: fault
  with pytest.raises(error, match=message) as raised:
    read(source)
  assert "\n" not in str(raised.value)
