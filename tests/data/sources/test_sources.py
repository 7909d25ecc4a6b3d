"""Sources: every kind on tiny inputs, odd text, TFDS, sentences."""

import gzip
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest
import sentencex
import zstandard

from maskedlm.core.errors import CorpusError
from maskedlm.data.sources import files, reader
from maskedlm.data.sources.sentences import MAX_SENTENCE, split_sentences

INVALID = "invalid UTF-8 bytes or lone surrogates replaced by U+FFFD"
CONTROL = "control characters replaced by a space"
NO_TEXT = "records dropped without a text in 'text'"


def read(source, text_field="text"):
  """(documents, what is not 0 in the report)."""
  report = Counter()
  found = list(
    reader.read_documents(source, text_field=text_field, report=report)
  )
  assert all(count > 0 for count in report.values())
  return found, dict(report)


def split(lines, mode="split", language="en"):
  report = Counter()
  found = split_sentences(lines, mode=mode, language=language, report=report)
  return found, dict(report)


# text:


def test_a_blank_line_or_a_file_s_end_ends_a_document(tmp_path):
  (tmp_path / "b.txt").write_text("Four.\n  \t\nFive.")
  (tmp_path / "a.txt").write_text("\n\nOne.\n  Two. \n\n\nThree.\n")
  found, report = read(f"text:{tmp_path}/*.txt")
  assert found == [["One.", "Two."], ["Three."], ["Four."], ["Five."]]
  assert report == {
    "files read": 2,
    "bytes read": 24 + 15,
    "documents": 4,
    "documents of a single line": 3,
    "lines": 5,
    "characters": 4 + 4 + 6 + 5 + 5,
  }


def test_the_bert_sample_text(data_dir):
  # Counted by hand: 3 lines of explanation, and two excerpts.
  found, report = read(f"text:{data_dir}/text/bert_sample_text.txt")
  assert [len(document) for document in found] == [3, 13, 15]
  assert report["bytes read"] == 4394
  by_line = [split(document, mode="lines")[0] for document in found]
  assert by_line == found
  # sentencex cuts one line of the last excerpt, a monologue, into 4; "4 A. M."
  # and "Mr. Cassius" stay whole. The first line ends within a word.
  by_sentencex = [len(split(document)[0]) for document in found]
  assert by_sentencex[:2] == [3, 13]
  assert split([found[1][4]])[0] == [found[1][4]]
  assert "4 A. M., with" in found[1][4]


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
  # Each file once, in the order of the paths, whatever names it first.
  several = f"text:{tmp_path}/z.log, {tmp_path}/x/1.txt,{tmp_path}/x"
  assert read(several)[0] == [*folder, ["I am z.log."]]


def test_a_path_with_brackets_is_a_path(tmp_path):
  (tmp_path / "a[1].txt").write_text("Brackets.")
  assert read(f"text:{tmp_path}/a[1].txt")[0] == [["Brackets."]]


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


def test_a_folder_that_can_not_be_read_is_named(tmp_path, monkeypatch):
  (tmp_path / "a.txt").write_text("Seen.")
  closed = tmp_path / "closed"
  closed.mkdir()
  scandir = os.scandir

  def refused(path):
    if path == str(closed):
      raise PermissionError(13, "Permission denied", path)
    return scandir(path)

  monkeypatch.setattr(os, "scandir", refused)
  with pytest.raises(CorpusError, match="closed can't be read: Permission"):
    read(f"text:{tmp_path}")


def test_a_pipe_is_refused(tmp_path):
  os.mkfifo(tmp_path / "pipe.txt")
  for spec in ("pipe.txt", "*.txt", ""):
    with pytest.raises(CorpusError, match=r"pipe\.txt is not a regular file"):
      read(f"text:{tmp_path}/{spec}")


def test_compressed_files_are_as_the_plain_ones(tmp_path):
  rng = random.Random(0)
  words = ["über", "Wort", "字", "😀", ".\n", "\n\n", "x" * 50]
  text = " ".join(rng.choice(words) for _ in range(60_000)).encode()
  half = len(text) // 2
  (tmp_path / "a.txt").write_bytes(text)
  # Two members and two frames, one of them skippable (magic, size, 3 bytes):
  # what `cat` and parallel compressors make.
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
  # A frame by hand, as zstd --long=31 begins it: the window, a raw block.
  frame = bytes.fromhex("28b52ffd 00 a8") + bytes([5 << 3 | 1, 0, 0]) + b"Long."
  (tmp_path / "a.txt.zst").write_bytes(frame)
  assert zstandard.get_frame_parameters(frame).window_size == 1 << 31
  assert read(f"text:{tmp_path}/a.txt.zst")[0] == [["Long."]]


def test_two_files_of_zstd_are_read_at_once(tmp_path, monkeypatch):
  """As threads of Beam's do: a decompressor has room for one stream only."""
  monkeypatch.setattr(files, "_BLOCK", 64)
  rng, expected, streams = random.Random(0), [], []
  for name in ("a.txt.zst", "b.txt.zst"):
    expected.append([str(rng.random()) for _ in range(10_000)])
    data = "\n".join(expected[-1]).encode()
    (tmp_path / name).write_bytes(zstandard.compress(data))
    streams.append(
      reader.read_documents(
        f"lines:{tmp_path}/{name}", text_field="", report=Counter()
      )
    )
  found = list(zip(*streams, strict=True))
  assert found == [([a], [b]) for a, b in zip(*expected, strict=True)]


@pytest.mark.parametrize("block", [1, 7, 4096])
def test_what_is_read_does_not_depend_on_the_blocks(
  tmp_path, monkeypatch, block
):
  monkeypatch.setattr(reader, "MAX_LINE", 20)
  text = "Ünï \r\n\r\n😀 b\x00c\n" + "long words here " * 9 + "\n\n" + "y" * 70
  path = tmp_path / "a.txt"
  path.write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\xff\xf0\x9f")
  whole = read(f"text:{path}")
  monkeypatch.setattr(files, "_BLOCK", block)
  assert read(f"text:{path}") == whole
  # 144 characters of "long words here " cut after the 16th: 8 cuts (the 9th
  # piece fits); 70 "y" and the 3 bad bytes after them cut at 20, 40 and 60.
  assert whole[1]["cuts in lines over 20 characters"] == 8 + 3
  assert whole[0][1][1:] == ["long words here"] * 9
  assert whole[0][2] == ["y" * 20] * 3 + ["y" * 10 + "\ufffd" * 3]
  assert whole[1][INVALID] == 3


def test_odd_bytes_are_repaired_and_counted(tmp_path):
  (tmp_path / "a.txt").write_bytes(
    b"\xef\xbb\xbfBOM first.\r\n"
    b"A \xff bad byte, caf\xe9 in Latin-1.\r\n"
    b"N\0U\0L.\n"
    b"\x1b[1mbold\x7f\x07 form\x0cfeed\tand a tab\n"
    b"A mid \xef\xbb\xbfmark and a surrogate \xed\xa0\x80.\n"
    b"Non-breaking\xc2\xa0space and C1 \xc2\x92 stay and go.\n"
  )
  found, report = read(f"text:{tmp_path}/a.txt")
  assert found == [
    [
      "BOM first.",
      "A \ufffd bad byte, caf\ufffd in Latin-1.",
      "NUL.",
      "[1mbold   form feed\tand a tab",
      "A mid mark and a surrogate \ufffd\ufffd\ufffd.",
      "Non-breaking\xa0space and C1   stay and go.",
    ]
  ]
  assert report[INVALID] == 2 + 3
  assert report["NUL characters removed"] == 2
  assert report["byte order marks removed"] == 2
  assert report[CONTROL] == 5
  assert report["files with CRLF or CR line ends"] == 1
  found[0][1].encode()  # No lone surrogate is left for a tokenizer to die of.


def test_a_line_of_which_nothing_is_left_is_blank(tmp_path):
  lines = ["One.", "\0 ", "Two.", "\ufeff", "Three.", "\x1b\x7f", "Four."]
  (tmp_path / "a.txt").write_text("\n".join(lines))
  assert read(f"text:{tmp_path}/a.txt")[0] == [[line] for line in lines[::2]]


def test_old_mac_line_ends_and_empty_files(tmp_path):
  (tmp_path / "a.txt").write_bytes(b"One.\rTwo.\r\rThree.")
  (tmp_path / "b.txt").write_bytes(b"")
  (tmp_path / "c.txt").write_bytes(b" \n\n\t\n")
  (tmp_path / "d.txt.gz").write_bytes(b"")
  (tmp_path / "e.txt.zst").write_bytes(b"")
  (tmp_path / "f.txt").write_bytes(b"\0\0\0" + 60 * b"\n")
  found, report = read(f"text:{tmp_path}")
  assert found == [["One.", "Two."], ["Three."]]
  assert report["files without text"] == 5
  assert report["NUL characters removed"] == 3
  assert report["files with CRLF or CR line ends"] == 1


def test_a_document_too_long_becomes_several(tmp_path, monkeypatch):
  monkeypatch.setattr(reader, "MAX_DOCUMENT", 10)
  (tmp_path / "a.txt").write_text("12345\n1234\n123\n12345678901\n1\n\n1\n")
  found, report = read(f"text:{tmp_path}/a.txt")
  # Closed by the line that reaches 10 characters.
  assert found == [["12345", "1234", "123"], ["12345678901"], ["1"], ["1"]]
  assert report["cuts in documents over 10 characters"] == 2


@pytest.mark.parametrize(
  "data", [b"word " * 2_000_000, b"x" * 10_000_000], ids=["words", "x"]
)
def test_a_line_of_10_MB(tmp_path, data):
  (tmp_path / "a.txt").write_bytes(data)
  start = time.process_time()
  found, report = read(f"text:{tmp_path}/a.txt")
  assert max(map(len, found[0])) <= reader.MAX_LINE
  # 10 M characters in pieces of 2**20 at most: 9 cuts. A document closes at
  # 2**22: after 4 pieces of x, or 5 of words, whose last space is stripped.
  assert report["cuts in lines over 1,048,576 characters"] == 9
  assert list(map(len, found)) == ([5, 5] if b" " in data else [4, 4, 2])
  sentences = [s for document in found for s in split(document)[0]]
  assert max(map(len, sentences)) <= MAX_SENTENCE
  assert "".join(sentences).replace(" ", "") == data.decode().replace(" ", "")
  if data.startswith(b"word"):
    assert {word for s in sentences for word in s.split()} == {"word"}
  assert time.process_time() - start < 20  # 0.08 s, measured.


@pytest.mark.skipif(
  not os.path.exists("/proc/self/status"), reason="peak memory is read there"
)
def test_memory_is_bounded_for_a_line_that_never_ends(tmp_path):
  # 200 MB of one line, in a small file, and no blank line in it.
  with gzip.open(tmp_path / "a.txt.gz", "wb", compresslevel=1) as file:
    for _ in range(200):
      file.write(b"abcd " * 200_000)
  script = """
import collections, re, sys
from maskedlm.data.sources import reader

def peak():  # In kB. (ru_maxrss would be that of the parent.)
  status = open("/proc/self/status").read()
  return int(re.search("VmHWM: *\t *([0-9]+)", status)[1])

before = peak()
report = collections.Counter()
for document in reader.read_documents(
  "text:" + sys.argv[1], text_field="text", report=report
):
  pass
print(report["bytes read"], peak() - before)
"""
  out = subprocess.run(
    [sys.executable, "-c", script, str(tmp_path / "a.txt.gz")],
    capture_output=True,
    text=True,
    check=True,
  ).stdout
  size, kilobytes = map(int, out.split())
  assert size == 200_000_000
  assert kilobytes < 60_000  # 17 MB, measured.


# lines:


def test_each_line_is_a_document(tmp_path):
  (tmp_path / "a.txt").write_text("One.\n Two. \n\n \t\nThree.")
  (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"Four.\r\nFive.\r\n"))
  (tmp_path / "c.txt").write_text("\n")
  found, report = read(f"lines:{tmp_path}")
  expected = ["One.", "Two.", "Three.", "Four.", "Five."]
  assert found == [[line] for line in expected]
  assert report["documents"] == report["lines"] == 5
  assert report["files without text"] == 1
  pieces = reader.list_pieces(f"lines:{tmp_path}", text_field="", num_bytes=1)
  again = [
    document
    for piece in pieces
    for document in reader.read_piece(
      f"lines:{tmp_path}", piece, text_field="", report=Counter()
    )
  ]
  assert len(pieces) == 3 and again == found


# jsonl:


def test_jsonl_records_good_and_bad(tmp_path):
  lines = [
    json.dumps({"text": "One.\nTwo.\r\n\r\nThree.\rFour.", "id": 1}),
    "",
    '{"text": "Cut off',
    json.dumps({"title": "No text."}),
    json.dumps({"text": ["A", "list"]}),
    json.dumps(["An array."]),
    json.dumps({"text": " \n "}),
    '{"text": "A lone \\ud800, a \\u0000, an emoji \\ud83d\\ude00."}',
    "[" * 100_000,
    '{"text": "A raw\ttab."}',
  ]
  (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
  found, report = read(f"jsonl:{tmp_path}")
  assert found == [
    ["One.", "Two.", "Three.", "Four."],
    ["A lone \ufffd, a , an emoji 😀."],
    ["A raw\ttab."],
  ]
  assert report["broken JSON records dropped"] == 2
  assert report[NO_TEXT] == 3
  assert report["empty documents dropped"] == 1
  assert report[INVALID] == 1
  assert report["NUL characters removed"] == 1
  assert report["documents"] == 3


def test_jsonl_with_bom_crlf_and_invalid_bytes_compressed(tmp_path):
  data = b'\xef\xbb\xbf{"body": "One \xff."}\r\n{"body": "Two."}\r\n'
  # Two files joined by cat, the second with its own mark.
  (tmp_path / "a.jsonl.zst").write_bytes(zstandard.compress(data + data))
  found, report = read(f"jsonl:{tmp_path}/*", text_field="body")
  assert found == [["One \ufffd."], ["Two."]] * 2
  assert report["byte order marks removed"] == 2
  assert report[INVALID] == 2
  assert report["files with CRLF or CR line ends"] == 1


def test_a_text_field_that_no_record_has(tmp_path):
  record = json.dumps({"texts": "Hello.", "id": 1}) + "\n"
  (tmp_path / "a.jsonl").write_text(record * 3)
  with pytest.raises(CorpusError, match='did you mean "texts"'):
    read(f"jsonl:{tmp_path}/a.jsonl")
  (tmp_path / "a.jsonl").write_text(record * 5_000)
  report = Counter()
  with pytest.raises(
    CorpusError, match=r"of the first 1,000 records.* a record has id, texts"
  ):
    list(
      reader.read_documents(
        f"jsonl:{tmp_path}/a.jsonl", text_field="text", report=report
      )
    )
  assert report[NO_TEXT] == 1_000  # It doesn't read terabytes to say so.


def test_a_json_line_too_long_is_dropped(tmp_path, monkeypatch):
  monkeypatch.setattr(reader, "MAX_RECORD", 100)
  monkeypatch.setattr(files, "_BLOCK", 64)
  for length in (80, 500):
    texts = ["Before.", "x" * length, "After."]
    (tmp_path / "a.jsonl").write_text(
      "\n".join(json.dumps({"text": text}) for text in texts)
    )
    found, report = read(f"jsonl:{tmp_path}/a.jsonl")
    dropped = report.get("records dropped over 100 characters", 0)
    assert (len(found), dropped) == ((3, 0) if length == 80 else (2, 1))


def test_a_json_record_of_10_MB_and_many_lines(tmp_path):
  text = "A line of text.\n" * 625_000
  (tmp_path / "a.jsonl").write_text(json.dumps({"text": text}))
  found, report = read(f"jsonl:{tmp_path}/a.jsonl")
  assert sum(map(len, found)) == report["lines"] == 625_000
  assert report["documents"] == 3  # 9.4 M characters by 4.2 M.


# Files and options that are wrong


def truncated(tmp_path, name, compress):
  rng = np.random.default_rng(0)
  data = rng.integers(97, 123, 300_000, np.uint8).tobytes()
  (tmp_path / name).write_bytes(compress(data)[:-40])


@pytest.mark.parametrize(
  "name, compress, reason",
  [
    ("a.txt.gz", gzip.compress, "ended before the end-of-stream"),
    ("a.txt.zst", zstandard.compress, "truncated"),
  ],
)
def test_a_truncated_file_is_named(tmp_path, name, compress, reason):
  truncated(tmp_path, name, compress)
  with pytest.raises(CorpusError, match=f"{name} can't be read.*{reason}"):
    read(f"text:{tmp_path}/{name}")


def test_a_damaged_file_is_named(tmp_path):
  (tmp_path / "a.txt.gz").write_bytes(b"no gzip at all")
  (tmp_path / "b.txt.zst").write_bytes(b"nor zstd")
  damaged = bytearray(gzip.compress(random.Random(0).randbytes(10_000)))
  damaged[5_000] ^= 1
  (tmp_path / "c.txt.gz").write_bytes(damaged)
  (tmp_path / "d.txt").symlink_to(tmp_path / "nowhere")
  for name in ("a.txt.gz", "b.txt.zst", "c.txt.gz", "d.txt"):
    with pytest.raises(CorpusError, match=f"{name} can't be read"):
      read(f"text:{tmp_path}/{name[:-1]}?")


@pytest.mark.parametrize(
  "data, name",
  [
    ("Hi.".encode("utf-16"), "UTF-16"),
    ("Hi.\n".encode("utf-16-le"), "UTF-16"),
    ("Привет, мир.\n".encode("utf-16-be"), "UTF-16"),
    ("Hi.\n".encode("utf-32-le"), "UTF-16, UTF-32 or binary"),
    (gzip.compress(b"Hi.", mtime=0), "gzip"),
    (zstandard.compress(b"Hi."), "zstd"),
    (b"%PDF-1.7 ...", "PDF"),
  ],
)
def test_files_that_are_no_text(tmp_path, data, name):
  (tmp_path / "a.txt").write_bytes(data)
  with pytest.raises(CorpusError, match=f"a.txt (is|looks like) {name}"):
    read(f"text:{tmp_path}/a.txt")


@pytest.mark.parametrize(
  "source, message",
  [
    ("txt:a", 'did you mean "text"'),
    ("json:a", 'did you mean "jsonl"'),
    ("/data/*.txt", "must be TYPE:.*known: text, lines"),
    ("", "must be TYPE:.*known: text, lines"),
    ("text:", "names no file"),
    ("text:, ,", "names no file"),
    ("text:/nowhere/*.txt", "'/nowhere/\\*.txt' matches no file"),
    ("jsonl:/nowhere", "'/nowhere' matches no file"),
    ("tfds:", "expected tfds:NAME"),
    ("docstrings:jsn", "no package 'jsn' is installed; did you mean"),
  ],
)
def test_a_wrong_source_is_refused_at_once(source, message):
  with pytest.raises(CorpusError, match=message):
    reader.read_documents(source, text_field="text", report=Counter())


def test_no_text_at_all_is_an_error(tmp_path):
  (tmp_path / "a.txt").write_bytes(b"\n \n")
  with pytest.raises(
    CorpusError, match=r"holds no text.*files without text: 1"
  ):
    read(f"text:{tmp_path}")
  (tmp_path / "empty").mkdir()
  with pytest.raises(CorpusError, match="matches no file"):
    read(f"text:{tmp_path}/empty")


# tfds:


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


def test_tfds(tfds_dir):
  found, report = read(f"tfds:odd_news@{tfds_dir}")
  assert found == [
    ["One.", "Two.", "Three."],
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


def test_tfds_in_pieces(tfds_dir):
  source = f"tfds:odd_news@{tfds_dir}"
  pieces = reader.list_pieces(
    source, text_field="text", num_bytes=2 * reader.RECORD_BYTES
  )
  assert len(pieces) > 1
  assert {len(piece.records) for piece in pieces[:-1]} == {2}
  report, found = Counter(), []
  for piece in pieces:
    found += reader.read_piece(source, piece, text_field="text", report=report)
  assert (found, +report) == (read(source)[0], +Counter(read(source)[1]))


def test_tfds_split_and_version(tfds_dir):
  first = [["One.", "Two.", "Three."]]
  assert read(f"tfds:odd_news:test@{tfds_dir}")[0] == first
  assert read(f"tfds:odd_news:1.0.0:test@{tfds_dir}")[0] == first
  sliced = read(f"tfds:odd_news:1.0.0:train[1:3]@{tfds_dir}")[0]
  assert sliced == [["Über 😀."], ["Bad \ufffd and NUL."]]


@pytest.mark.parametrize(
  "name, text_field, message",
  [
    ("odd_newz", "text", "Dataset odd_newz not found"),
    ("odd_news:dev", "text", "Unknown split 'dev'"),
    ("odd_news:2.0.0", "text", "can't open"),
    ("odd_news", "test", 'did you mean "text"'),
  ],
)
def test_tfds_errors(tfds_dir, name, text_field, message):
  with pytest.raises(CorpusError, match=message):
    reader.read_documents(
      f"tfds:{name}@{tfds_dir}", text_field=text_field, report=Counter()
    )
  with pytest.raises(CorpusError, match=r"holds no text.*'id': 4"):
    read(f"tfds:odd_news@{tfds_dir}", text_field="id")


def test_sources_import_neither_jax_nor_tensorflow(tfds_dir):
  script = f"""
import collections, sys
from maskedlm.data.sources import reader
source = "tfds:odd_news@{tfds_dir}"
report = collections.Counter()
list(reader.read_documents(source, text_field="text", report=report))
print([m for m in ("jax", "tensorflow", "torch", "flax") if m in sys.modules])
"""
  out = subprocess.run(
    [sys.executable, "-c", script], capture_output=True, text=True, check=True
  )
  assert out.stdout.strip() == "[]"


# Sentences


def test_sentences_are_split_or_lines():
  lines = ['Dr. Smith paid $3.50. "Why?" he asked.', "  Second   line \u3000"]
  assert split(lines)[0] == [
    "Dr. Smith paid $3.50.",
    '"Why?" he asked.',
    "Second   line",
  ]
  assert split(lines, mode="lines")[0] == [lines[0], "Second   line"]
  assert split(["我喜欢。你呢？"], language="zh")[0] == ["我喜欢。", "你呢？"]
  assert split([]) == ([], {})


@pytest.mark.parametrize(
  "mode, language, message",
  [
    ("sentence", "en", "corpus.sentences='sentence'.*split, lines"),
    ("split", "english", "corpus.language='english'.*ISO 639-1"),
    ("split", "EN", "ISO 639-1"),
  ],
)
def test_wrong_sentence_options(mode, language, message):
  with pytest.raises(CorpusError, match=message):
    split(["One. Two."], mode=mode, language=language)


@pytest.mark.parametrize("mode", ["split", "lines"])
def test_a_sentence_too_long_is_cut_at_spaces(mode):
  # 1,000 words of 9 + 1 characters: 400 fit in 4,000.
  found, report = split(["wordlets, " * 1_000], mode=mode)
  assert [len(s.split()) for s in found] == [400, 400, 200]
  assert report == {"cuts in sentences over 4,000 characters": 2}
  found, report = split(["y" * 9_001], mode=mode)
  assert [len(s) for s in found] == [4_000, 4_000, 1_001]


def test_windows_give_the_sentences_of_the_whole_line():
  rng = random.Random(3)
  words = ["Mr.", "Fox", "met", "Dr.", "Bo", "at", "3.50", "U.S.", "e.g."]
  sentences = [
    " ".join(["The", *rng.choices(words, k=rng.randint(3, 40)), end])
    for end in rng.choices(["day.", "why?", "(then)!"], k=900)
  ]
  line = " ".join(sentences)
  assert len(line) > 15 * MAX_SENTENCE
  expected = [s.strip() for s in sentencex.segment("en", line)]
  assert split([line]) == (expected, {})


def test_a_long_line_of_chinese_takes_linear_time():
  # sentencex alone took 1.6 s for a quarter of it, 156 s for 2.5 times it.
  line = "我喜欢。" * 100_000
  start = time.process_time()
  found, _ = split([line], language="zh")
  assert time.process_time() - start < 20  # 0.3 s, measured.
  assert found == ["我喜欢。"] * 100_000


def test_sentencex_panics_are_avoided_or_survived(monkeypatch):
  # "B\xa0." makes sentencex 1.0.32 panic, which is no Exception.
  assert split(["Plan B\xa0. Good."])[0] == ["Plan B\xa0. Good."]

  class PanicException(BaseException):
    pass

  def panic(language, text):
    raise PanicException

  monkeypatch.setattr(sentencex, "segment", panic)
  assert split(["One. Two."]) == (
    ["One. Two."],
    {"stretches of text that sentencex failed to split": 1},
  )


def test_nothing_of_a_text_is_lost_in_splitting():
  rng = random.Random(5)
  alphabet = [*"aB.?!。()'\"“”「我é😀\u3000\xa0\u2028 1", "Mr. ", "U.S. ", "  "]
  for language in ("en", "zh", "fr", "hi", "xx"):
    for _ in range(40):
      line = "".join(rng.choices(alphabet, k=rng.choice([3, 30, 9_000])))
      found = "".join(split([line], language=language)[0])
      assert re.sub(r"\s", "", found) == re.sub(r"\s", "", line)
