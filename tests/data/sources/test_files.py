"""Files of text: globs and links, compression, files that are damaged."""

import gzip
import os
import random

import numpy as np
import pytest
import zstandard

from helpers.read_source import read
from maskedlm.core.errors import CorpusError


def test_globs_commas_folders_and_endings(tmp_path):
  for name in (
    "x/1.txt",
    "x/y/2.txt.gz",
    "x/y/3.TXT",
    "x/y/4.txt.zst",
    "z.log",
  ):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = f"I am {name}.".encode()
    if name.endswith(".gz"):
      data = gzip.compress(data)
    elif name.endswith(".zst"):
      data = zstandard.compress(data)
    path.write_bytes(data)
  (tmp_path / "x/._1.txt").write_text("Left by macOS.")
  (tmp_path / "x/notes.md").write_text("Not text.")
  folder = [["I am x/1.txt."]] + [
    [f"I am x/y/{name}."] for name in ("2.txt.gz", "3.TXT", "4.txt.zst")
  ]
  assert read(f"text:{tmp_path}/x")[0] == folder
  assert read(f"text:{tmp_path}/**/*.txt")[0] == folder[:1]
  # Each file once, in the order of the paths, not of the items.
  several = f"text:{tmp_path}/z.log, {tmp_path}/x/1.txt,{tmp_path}/x"
  assert read(several)[0] == [*folder, ["I am z.log."]]


def test_a_path_with_a_comma_is_a_path(tmp_path):
  (tmp_path / "a, b").mkdir()
  (tmp_path / "a, b" / "c,d.txt").write_text("Commas.")
  (tmp_path / "e.txt").write_text("None.")
  for spec in ("a, b", "a, b/c,d.txt", "a, b/*.txt"):
    assert read(f"text:{tmp_path}/{spec}")[0] == [["Commas."]]
  both = f"text:{tmp_path}/a*,{tmp_path}/e.txt"
  assert read(both)[0] == [["Commas."], ["None."]]


def test_links_are_followed_and_a_file_is_read_once(tmp_path):
  for name in ("real/a.txt", "other/b.txt"):
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(f"I am {name}.")
  (tmp_path / "real" / "linked").symlink_to("../other")
  (tmp_path / "other" / "back").symlink_to("../real")
  (tmp_path / "real" / "c.txt").symlink_to("a.txt")
  expected = [["I am real/a.txt."], ["I am other/b.txt."]]
  assert read(f"text:{tmp_path}/real")[0] == expected
  assert read(f"text:{tmp_path}/real/**/*.txt")[0] == expected
  spellings = f"{tmp_path}/real/c.txt,{tmp_path}/other/../real/a.txt"
  assert read(f"text:{spellings}")[0] == expected[:1]


def test_a_pipe_is_rejected(tmp_path):
  os.mkfifo(tmp_path / "pipe.txt")
  for spec in ("pipe.txt", "*.txt", ""):
    with pytest.raises(CorpusError, match=r"pipe\.txt is not a regular file"):
      read(f"text:{tmp_path}/{spec}")


def test_compressed_files_have_the_text_of_plain_ones(tmp_path):
  rng = random.Random(0)
  words = ["über", "Wort", "字", "😀", ".\n", "\n\n", "x" * 50]
  text = " ".join(rng.choice(words) for _ in range(20_000)).encode()
  half = len(text) // 2
  (tmp_path / "a.txt").write_bytes(text)
  # Two members, and two frames with a skippable one between (magic, size, 3
  # bytes), as made by `cat` and parallel compressors.
  skippable = bytes.fromhex("502a4d1803000000616263")
  (tmp_path / "a.txt.gz").write_bytes(
    gzip.compress(text[:half]) + gzip.compress(text[half:])
  )
  (tmp_path / "a.txt.zst").write_bytes(
    zstandard.compress(text[:half])
    + skippable
    + zstandard.compress(text[half:])
  )
  plain = read(f"text:{tmp_path}/a.txt")
  assert len(plain[0]) > 1000
  assert read(f"text:{tmp_path}/a.txt.gz") == plain
  assert read(f"text:{tmp_path}/a.txt.zst") == plain


def test_any_window_of_zstd_is_read(tmp_path):
  # A frame as zstd --long=31 begins it: the window, and a raw block.
  frame = bytes.fromhex("28b52ffd 00 a8") + bytes([5 << 3 | 1, 0, 0]) + b"Long."
  (tmp_path / "a.txt.zst").write_bytes(frame)
  assert zstandard.get_frame_parameters(frame).window_size == 1 << 31
  assert read(f"text:{tmp_path}/a.txt.zst")[0] == [["Long."]]


@pytest.mark.parametrize(
  "name, compress, reason",
  [
    ("a.txt.gz", gzip.compress, "ended before the end-of-stream"),
    ("a.txt.zst", zstandard.compress, "truncated"),
  ],
)
def test_a_truncated_file_is_named(tmp_path, name, compress, reason):
  rng = np.random.default_rng(0)
  data = rng.integers(97, 123, 300_000, np.uint8).tobytes()
  (tmp_path / name).write_bytes(compress(data)[:-40])
  with pytest.raises(CorpusError, match=f"{name} can't be read.*{reason}"):
    read(f"text:{tmp_path}/{name}")


def test_a_damaged_file_is_named(tmp_path):
  (tmp_path / "a.txt.gz").write_bytes(b"no gzip at all")
  (tmp_path / "b.txt.zst").write_bytes(b"nor zstd")
  damaged = bytearray(gzip.compress(random.Random(0).randbytes(10_000)))
  damaged[5_000] ^= 1
  (tmp_path / "c.txt.gz").write_bytes(damaged)
  (tmp_path / "d.txt").symlink_to(tmp_path / "nowhere")
  with pytest.raises(CorpusError, match=r"Not a gzipped file .*b'no'"):
    read(f"text:{tmp_path}/a.txt.gz")
  (tmp_path / "e.tgz").write_bytes(
    gzip.compress(b"a".ljust(257, b"\0") + b"ustar")
  )
  with pytest.raises(CorpusError, match=r"e.tgz is a tar archive; .*tar -xf"):
    read(f"text:{tmp_path}/e.tgz")
  for name in ("a.txt.gz", "b.txt.zst", "c.txt.gz", "d.txt"):
    with pytest.raises(CorpusError, match=f"{name} can't be read"):
      read(f"text:{tmp_path}/{name[:-1]}?")


@pytest.mark.parametrize(
  "data, name",
  [
    ("Hi.".encode("utf-16"), "UTF-16; .*iconv -f utf-16 "),
    (b"Some\0NULs\0in\0a\0text.", "binary"),
    (gzip.compress(b"Hi.", mtime=0), "gzip.* name it .gz"),
    (b"%PDF-1.7 ...", "PDF.*export or convert it"),
    (b"a".ljust(257, b"\0") + b"ustar", "a tar archive; .*tar -xf FILE"),
  ],
)
def test_files_that_are_not_text(tmp_path, data, name):
  (tmp_path / "a.txt").write_bytes(data)
  with pytest.raises(CorpusError, match=f"a.txt is {name}"):
    read(f"text:{tmp_path}/a.txt")
