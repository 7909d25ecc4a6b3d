"""What a file is by its first bytes, and the remedy."""

import bz2
import gzip
import lzma
import pickle

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
    ("text".encode("utf-16-le"), "binary data, or UTF-16 without a mark (many"),
    ("Да, да.".encode("utf-16-be"), "binary data, or UTF-16 without a mark"),
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
  found = encodings.name_of_binary(head)
  assert found.startswith(name) and bool(found) == bool(name)


def test_a_page_of_the_web():
  assert encodings.is_html(b"\n<!DOCTYPE html><html>")
  assert not encodings.is_html(b"<e1>a</e1>")


@pytest.mark.parametrize("name", ["utf-16", "utf-32"])
def test_the_remedy_for_wide_characters_gives_the_text(name):
  text = "text\tlabel\nGröße, 猫\t1\n" * 9
  data = text.encode(name)
  remedy = encodings.remedy_for_binary(encodings.name_of_binary(data))
  assert data.decode(remedy.split()[4]) == text
