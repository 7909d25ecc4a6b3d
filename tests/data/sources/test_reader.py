"""Sources of text files and JSON lines: documents, odd text, limits."""

import gzip
import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from helpers.read_source import INVALID, read, read_pieces
from maskedlm.core.errors import CorpusError
from maskedlm.data.sources import files, reader

CONTROL = "control characters replaced by a space"


NO_TEXT = "records dropped without a text in 'text'"


def test_a_document_ends_at_a_blank_line_or_the_files_end(tmp_path):
  (tmp_path / "b.txt").write_text("Four.\n  \t\nFive.")
  (tmp_path / "a.txt").write_text("\n\nOne.\n  Two. \n\n\nThree.\n")
  found, report = read(f"text:{tmp_path}/*.txt")
  assert found == [["One.", "  Two."], ["Three."], ["Four."], ["Five."]]
  assert report == {
    "files read": 2,
    "bytes read": 24 + 15,
    "documents": 4,
    "documents of a single line": 3,
    "lines": 5,
    "characters": 4 + 4 + 6 + 5 + 5,
  }


@pytest.mark.parametrize("block", [1, 7, 4096])
def test_documents_do_not_depend_on_the_blocks(tmp_path, monkeypatch, block):
  monkeypatch.setattr(reader, "MAX_LINE", 20)
  text = "Ünï \r\n\r\n😀 b\x00c\n" + "long words here " * 9 + "\n\n" + "y" * 70
  path = tmp_path / "a.txt"
  path.write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\xff\xf0\x9f")
  whole = read(f"text:{path}")
  monkeypatch.setattr(files, "BLOCK", block)
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
      " [1mbold   form feed\tand a tab",
      "A mid mark and a surrogate \ufffd\ufffd\ufffd.",
      "Non-breaking\xa0space and C1   stay and go.",
    ]
  ]
  assert report[INVALID] == 2 + 3
  assert report["NUL characters removed"] == 2
  assert report["byte order marks removed"] == 2
  assert report[CONTROL] == 5
  assert report["files with CRLF or CR line ends"] == 1
  found[0][1].encode()  # Has no lone surrogate, which tokenizers reject.


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


def test_a_long_document_is_cut(tmp_path, monkeypatch):
  monkeypatch.setattr(reader, "MAX_DOCUMENT", 10)
  (tmp_path / "a.txt").write_text("12345\n1234\n123\n12345678901\n1\n\n1\n")
  found, report = read(f"text:{tmp_path}/a.txt")
  # A document is cut after the line that reaches 10 characters.
  assert found == [["12345", "1234", "123"], ["12345678901"], ["1"], ["1"]]
  assert report["cuts in documents over 10 characters"] == 2


@pytest.mark.skipif(
  not os.path.exists("/proc/self/status"), reason="peak memory is read there"
)
def test_memory_is_bounded_for_a_line_that_never_ends(tmp_path):
  # 100 MB of one line, in a small file, and no blank line in it.
  with gzip.open(tmp_path / "a.txt.gz", "wb", compresslevel=1) as file:
    for _ in range(100):
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
  assert size == 100_000_000
  assert kilobytes < 60_000  # 17 MB, measured.


def test_each_line_is_a_document(tmp_path):
  (tmp_path / "a.txt").write_text("One.\n Two. \n\n \t\nThree.")
  (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"Four.\r\nFive.\r\n"))
  (tmp_path / "c.txt").write_text("\n")
  found, report = read(f"lines:{tmp_path}")
  expected = ["One.", " Two.", "Three.", "Four.", "Five."]
  assert found == [[line] for line in expected]
  assert report["documents"] == report["lines"] == 5
  assert report["files without text"] == 1
  pieces, again, _ = read_pieces(f"lines:{tmp_path}")
  assert len(pieces) == 3 and again == found


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
    ["One.", "Two.", "", "Three.", "Four."],
    ["A lone \ufffd, a , an emoji 😀."],
    ["A raw\ttab."],
  ]
  assert report["broken JSON records dropped"] == 2
  assert report[NO_TEXT] == 3
  assert report["empty documents dropped"] == 1
  assert report[INVALID] == 1
  assert report["NUL characters removed"] == 1
  assert report["documents"] == 3


@pytest.mark.parametrize(
  ("text", "what"),
  [
    ("<!DOCTYPE html><html>", "a page of HTML"),
    ('{"text": "One."}\n', "JSON objects; read it as jsonl:"),
    ("{'text': 'One.'}\n", "dicts of Python; write them with json.dumps"),
    ("{One.}", ""),
  ],
)
def test_a_text_that_is_no_prose_is_told(tmp_path, text, what):
  (tmp_path / "a.txt").write_text(text)
  [*warnings] = (x for x in read(f"text:{tmp_path}")[1] if "warning" in x)
  assert bool(warnings) == bool(what)
  assert not what or f"{tmp_path}/a.txt is " in warnings[0]
  assert what in "".join(warnings)


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
  assert report[NO_TEXT] == 1_000  # It doesn't read terabytes first.


def test_a_long_json_line_is_dropped(tmp_path, monkeypatch):
  monkeypatch.setattr(reader, "MAX_RECORD", 100)
  monkeypatch.setattr(files, "BLOCK", 64)
  for length in (80, 500):
    texts = ["Before.", "x" * length, "After."]
    (tmp_path / "a.jsonl").write_text(
      "\n".join(json.dumps({"text": text}) for text in texts)
    )
    found, report = read(f"jsonl:{tmp_path}/a.jsonl")
    dropped = report.get("records dropped over 100 characters", 0)
    assert (len(found), dropped) == ((3, 0) if length == 80 else (2, 1))


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
    ("docstrings:jsn", "no package 'jsn' is installed \\(did you mean"),
  ],
)
def test_a_wrong_source_is_rejected_at_once(source, message):
  with pytest.raises(CorpusError, match=message):
    reader.read_documents(source, text_field="text", report=Counter())
