"""What a file is by its bytes, and remedies that keep its text."""

import bz2
import gzip
import lzma
import pickle
import re

import pytest
import zstandard

from maskedlm.data.sources import encodings


@pytest.mark.parametrize(
  ("head", "name"),
  [
    (gzip.compress(b"a", mtime=0), "gzip"),
    (bz2.compress(b"a"), "bzip2"),
    (lzma.compress(b"a"), "xz"),
    (zstandard.compress(b"a"), "zstd"),
    (b"PAR1abc", "Parquet"),
    ("text".encode("utf-16"), "UTF-16"),
    ("text".encode("utf-32"), "UTF-32"),
    ("text".encode("utf-16-le"), "UTF-16LE"),
    ("Да, да.".encode("utf-16-be"), "UTF-16BE"),
    (b"PK\x03\x04", "zip or Excel (.xlsx)"),
    (b"SQLite format 3\0", "an SQLite database"),
    (pickle.dumps(["a"], protocol=4), "a pickle of Python"),
    (pickle.dumps(["a"], protocol=5), "a pickle of Python"),
    (b"\x93NUMPY\x01\0", "an array of numpy"),
    (b"text\tlabel\n", ""),
    ("Größe 猫\n".encode(), ""),
    (b"a" * 99 + b"\0", ""),
    (b"", ""),
  ],
)
def test_first_bytes(head, name):
  assert encodings.name_of_binary(head) == name


def test_a_page_of_the_web():
  assert encodings.is_html(b"\n<!DOCTYPE html><html>")
  assert not encodings.is_html(b"<e1>a</e1>")


@pytest.mark.parametrize("name", ["utf-16", "utf-32", "utf-16-le", "utf-16-be"])
def test_the_remedy_for_wide_characters_gives_the_text(name):
  text = "text\tlabel\nGröße, 猫\t1\n" * 9
  data = text.encode(name)
  found = encodings.name_of_binary(data)
  remedy = encodings.remedy_for_binary(found)
  if "iconv" in remedy:
    assert data.decode(remedy.split()[4]) == text
  else:
    assert found.startswith("UTF-16, UTF-32")


@pytest.mark.parametrize(
  ("text", "encoding"),
  [
    ("I don’t like “it” – no", "cp1252"),
    ("Öl für Köln, café", "cp1252"),
    ("Öl für Köln", "latin-1"),
    ("Привет, мир", "cp1251"),
    ("我们去北京。", "gbk"),
    ("猫が好きです", "shift_jis"),
    ("καλημέρα", "cp1253"),
  ],
)
def test_a_named_encoding_gives_the_text(text, encoding):
  data = text.encode(encoding)
  remedy = encodings.remedy_for_invalid([b"ascii", data], is_utf8=False)
  found = re.search("iconv -f ([^ ]+) ", remedy)[1]
  assert data.decode(found) == text


def test_a_damaged_line_of_utf8_is_not_converted():
  lines = ["Größe".encode(), "Größe".encode()[:3]]
  assert "iconv" not in encodings.remedy_for_invalid(lines, is_utf8=False)
  assert "iconv" not in encodings.remedy_for_invalid([b"\xff"], is_utf8=True)
