"""Copies of corpora at addresses, read from a file system in memory."""

import hashlib
import json
import shutil
import types

import fsspec
import pytest

from maskedlm.core.errors import ConfigError
from maskedlm.data.corpus import download
from maskedlm.runtime import buckets


@pytest.fixture
def bucket(monkeypatch, tmp_path):
  """Puts a corpus at memory://...; uses an empty cache."""
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  fs = fsspec.filesystem("memory")
  contents = {
    "train-00000.tokens.npy": bytes(range(251)) * 7,
    "tokenizer/vocab.txt": b"[PAD]\n[UNK]\n",
    "empty.npy": b"",
  }
  root = f"/{tmp_path.name}/wiki"
  for name, content in contents.items():
    fs.pipe_file(f"{root}/{name}", content)
  meta = {
    name: {"bytes": len(x), "sha256": hashlib.sha256(x).hexdigest()}
    for name, x in contents.items()
  }
  fs.pipe_file(f"{root}/meta.json", json.dumps({"files": meta}).encode())
  return fs, root, contents


def copied(root, log=None):
  lines = [] if log is None else log
  address = buckets.normalize(f"memory:/{root}")
  text = download.read_meta(address)
  files, folder = (
    download.files_of(address, text),
    download.place(address, text),
  )
  download.copy(address, text, files, folder, log=lines.append)
  return folder


def test_a_corpus_is_copied_once(bucket, tmp_path):
  fs, root, contents = bucket
  log = []
  folder = copied(root, log)
  assert folder.parent == tmp_path / "cache" / "maskedlm" / "corpora"
  for name, content in contents.items():
    assert (folder / name).read_bytes() == content
  assert (folder / "meta.json").read_bytes() == fs.cat(f"{root}/meta.json")
  assert f"copying memory:/{root} to {folder}" in log[0]
  assert log[-1].endswith(" kB") and len(log) > 1
  # After that only meta.json is read; if it changed, the corpus is another one.
  fs.rm(f"{root}/train-00000.tokens.npy")
  log.clear()
  assert copied(root + "/", log) == folder and not log
  meta = json.loads(fs.cat(f"{root}/meta.json"))
  del meta["files"]["train-00000.tokens.npy"]
  fs.pipe_file(f"{root}/meta.json", json.dumps(meta).encode())
  assert copied(root) != folder


def test_a_copy_is_complete_or_absent_and_resumes(bucket, tmp_path):
  fs, root, contents = bucket
  name = "train-00000.tokens.npy"
  fs.pipe_file(f"{root}/{name}", contents[name][:-1] + b"x")
  with pytest.raises(ConfigError, match=f"{name} differs from its SHA-256"):
    copied(root)
  folder = tmp_path / "cache/maskedlm/corpora"
  left = {p.name for p in folder.iterdir()}
  (part,) = (x for x in left if x.endswith(".part"))
  assert left == {part, part.replace(".part", ".lock")}
  # Complete files are not read again. Threads copy them, so it is chance which
  # files were complete when the damaged one stopped the copy.
  whole = folder / part / "tokenizer" / "vocab.txt"
  whole.parent.mkdir(exist_ok=True)
  whole.write_bytes(contents["tokenizer/vocab.txt"])
  fs.rm(f"{root}/tokenizer/vocab.txt")
  fs.pipe_file(f"{root}/{name}", contents[name])
  assert (copied(root) / "tokenizer" / "vocab.txt").exists()


@pytest.mark.parametrize(
  ("meta", "words"),
  [
    (None, "no finished corpus is there"),
    ("{", "not that of a corpus"),
    ('{"files": [1]}', "not that of a corpus"),
    ('{"files": {"x": {"bytes": "3", "sha256": ""}}}', "not that of a corpus"),
    ('{"files": {"x": {"bytes": 3}}}', "not that of a corpus"),
    ('{"files": {"../x": {"bytes": 1, "sha256": ""}}}', "outside of the corp"),
    ('{"files": {"/x": {"bytes": 1, "sha256": ""}}}', "outside of the corpus"),
    ('{"files": {"x": {"bytes": -1, "sha256": ""}}}', "outside of the corpus"),
    ('{"files": {"x": {"bytes": 1, "sha256": ""}}}', "can't be copied"),
  ],
)
def test_other_contents_are_refused(bucket, meta, words):
  fs, root, _ = bucket
  fs.rm(f"{root}/meta.json")
  if meta is not None:
    fs.pipe_file(f"{root}/meta.json", meta.encode())
  with pytest.raises(ConfigError, match=words) as caught:
    copied(root)
  assert "\n" not in str(caught.value)


def test_too_small_a_disk_is_an_error(bucket, monkeypatch):
  free = types.SimpleNamespace(free=1000)
  monkeypatch.setattr(shutil, "disk_usage", lambda path: free)
  with pytest.raises(ConfigError, match="XDG_CACHE_HOME"):
    copied(bucket[1])
