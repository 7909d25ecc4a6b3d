"""Vector files: contents, atomicity, memory."""

import errno
import json
import tracemalloc

import numpy as np
import pytest

from maskedlm.core.errors import StorageError
from maskedlm.data.labelled.text_lines import Text
from maskedlm.inference.vectors import writers
from maskedlm.inference.vectors.vectors import Vectors

ABOUT = {"unit": "token", "layers": [2]}
A = Text("the cät", None, "a.txt", 3)
B = Text("", None, "a.txt", 5)
C = Text("\u4e2d \U0001f600", None, "b.jsonl", 1)
# Text 0 continues in the second piece.
PIECES = [
  Vectors(
    np.float32([[0.1, -1e-30, 3.4e38]]),
    np.array([0]),
    np.array([[0, 3]]),
    np.int32([7]),
    (A,),
  ),
  Vectors(
    np.float32([[1, 2, 1 / 3], [4, 5, 6], [7, 8, 9]]),
    np.array([0, 1, 2]),
    np.array([[4, 7], [0, 0], [2, 3]], np.int32),
    np.int32([8, 9, -1]),
    (A, B, C),
  ),
]
ALL = np.concatenate([piece.values for piece in PIECES])
FORMS = ["the", "cät", "", "\U0001f600"]


def write(path, pieces=PIECES):
  with writers.open_writer(path, ABOUT) as writer:
    for piece in pieces:
      writer(piece)


def read_npz(path):
  with np.load(path, allow_pickle=False) as file:
    arrays = dict(file)
  return arrays, json.loads(str(arrays.pop("about")))


def test_arrays(tmp_path):
  path = tmp_path / "v.npz"
  write(path)
  arrays, about = read_npz(path)
  np.testing.assert_array_equal(arrays["vectors"], ALL)
  assert arrays["vectors"].dtype == np.float32
  assert arrays["ids"].tolist() == [7, 8, 9, -1]
  assert about == {**ABOUT, "files": ["a.txt", "b.jsonl"]}
  # As docs/guides/use/embeddings.md traces a vector.
  sources = []
  for i in range(4):
    t = arrays["texts"][i]
    start, stop = arrays["text_starts"][t : t + 2]
    text = bytes(arrays["text_bytes"][start:stop]).decode()
    begin, end = arrays["offsets"][i]
    assert text[begin:end] == FORMS[i]
    file = about["files"][arrays["text_files"][t]]
    sources.append(Text(text, None, file, arrays["text_lines"][t]))
  assert sources == [A, A, B, C]


def test_jsonl(tmp_path):
  path = tmp_path / "v.jsonl"
  write(path)
  lines = [json.loads(x) for x in path.read_text("utf-8").splitlines()]
  np.testing.assert_array_equal(
    np.float32([line.pop("vector") for line in lines]), ALL
  )
  assert lines[1] == {
    "file": "a.txt",
    "line": 3,
    "text": 0,
    "begin": 4,
    "end": 7,
    "form": "cät",
    "id": 8,
  }
  assert [line["form"] for line in lines] == FORMS
  assert "id" not in lines[3]


@pytest.mark.parametrize("suffix", writers.WRITERS)
def test_the_file_is_complete_or_unchanged(tmp_path, suffix):
  path = tmp_path / f"v{suffix}"
  path.write_text("before")
  with (
    pytest.raises(KeyboardInterrupt),
    writers.open_writer(path, ABOUT) as writer,
  ):
    writer(PIECES[0])
    raise KeyboardInterrupt
  assert path.read_text() == "before"
  with writers.open_writer(path, ABOUT) as writer:
    for piece in PIECES:
      writer(piece)
      assert path.read_text() == "before"
  assert path.stat().st_size > 100
  assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_full_disk_is_a_storage_error(tmp_path):
  full = OSError(errno.ENOSPC, "No space left on device")
  with (
    pytest.raises(StorageError, match=r"--out=.*v\.npz can't be written \(No"),
    writers.open_writer(tmp_path / "v.npz", ABOUT),
  ):
    raise full
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", writers.WRITERS)
def test_memory_is_bounded(tmp_path, suffix):
  def pieces():
    for i in range(30):  # 30 MB of vectors in total (0.5 MB for .jsonl).
      n = 256 if suffix != ".jsonl" else 4
      yield Vectors(
        np.full((n, 1024), i, np.float32),
        np.full(n, i),
        np.zeros((n, 2), np.int64),
        np.zeros(n, np.int32),
        (A,) * n,
      )

  tracemalloc.start()
  write(tmp_path / f"v{suffix}", pieces())
  _, peak = tracemalloc.get_traced_memory()
  tracemalloc.stop()
  # numpy writes an .npz through buffers of 16 MB.
  most = {".npz": 20e6, ".jsonl": 0.3e6}
  assert peak < most[suffix]
