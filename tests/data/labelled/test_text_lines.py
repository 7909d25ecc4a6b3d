"""Lines, files and JSON as texts that know where they come from."""

import bz2
import gzip
import io
import json
import lzma
import sys
from collections import Counter

import pytest
import zstandard

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import text_lines
from maskedlm.data.labelled.formats import texts
from maskedlm.data.labelled.text_lines import Text


def write(tmp_path, content, name="a.txt"):
  path = tmp_path / name
  path.write_bytes(content)
  return str(path)


def test_lines_of_several_files(tmp_path):
  a = write(tmp_path, b'\xef\xbb\xbfone\r\n\n  \n{"text": 1}\n')
  b = write(tmp_path, "zwölf".encode(), "b.md")
  seen = Counter()
  assert list(text_lines.read_texts([a, b], seen=seen)) == [
    Text("one", None, a, 1),
    Text('{"text": 1}', None, a, 4),
    Text("zwölf", None, b, 1),
  ]
  assert seen == {"bytes": text_lines.total_bytes([a, b]), "texts": 3}
  assert seen["bytes"] == 8 + 1 + 3 + 12 + 6


def test_json_objects(tmp_path):
  path = write(
    tmp_path,
    b'{"text": "a b", "id": 7}\n\n{"tokens": ["a", "U.S.", ""], "text": "x"}\n'
    b'{"text": ""}\n{"text": "\\ud83d"}\n',
    "a.jsonl",
  )
  assert list(text_lines.read_texts([path])) == [
    Text("a b", None, path, 1, "7"),
    Text("a U.S. ", ("a", "U.S.", ""), path, 3),
    Text("", None, path, 4),
    Text("\ufffd", None, path, 5),
  ]
  renamed = write(tmp_path, b'{"body": "a"}', "b.json")
  (text,) = text_lines.read_texts([renamed], form="jsonl", field="body")
  assert text.text == "a"


def test_compressed_files(tmp_path):
  """They are read like the plain file, with the same line numbers in errors."""
  lines = b'\xef\xbb\xbf{"text": "a"}\r\n\n{"text": "b"}'
  for name, compress in (
    ("a.jsonl.gz", gzip.compress),
    ("a.JSONL.zst", zstandard.compress),
    ("a.jsonl.bz2", bz2.compress),
    ("a.jsonl.xz", lzma.compress),
  ):
    path = write(tmp_path, compress(lines), name)
    found = list(text_lines.read_texts([path]))
    assert found == [Text("a", None, path, 1), Text("b", None, path, 3)]
    assert text_lines.total_bytes([path]) == 0
  odd = b"a\rb\0\n%PDF-\r\n"  # Lines end as in the plain file.
  plain = list(text_lines.read_lines(write(tmp_path, odd, "d.txt")))
  assert plain == [(1, "a\rb\0"), (2, "%PDF-")]
  odd = write(tmp_path, gzip.compress(odd), "d.txt.gz")
  assert list(text_lines.read_lines(odd)) == plain
  latin = write(tmp_path, gzip.compress(b"one\ncaf\xe9\n"), "b.txt.gz")
  with pytest.raises(DataError, match=r"b\.txt\.gz:2: not UTF-8 \(byte 0xe9 a"):
    list(text_lines.read_texts([latin]))
  cut = write(tmp_path, gzip.compress(lines)[:-9], "c.gz")
  with pytest.raises(DataError, match=r"c\.gz can't be .*; fetch it again\.$"):
    list(text_lines.read_texts([cut]))
  plain = write(tmp_path, b"plain", "e.gz")  # The first bytes decide.
  assert list(text_lines.read_lines(plain)) == [(1, "plain")]


def test_stdin(monkeypatch):
  stdin = io.TextIOWrapper(io.BytesIO(b"one\ntwo"))
  monkeypatch.setattr(sys, "stdin", stdin)
  assert list(text_lines.read_texts(["-"])) == [
    Text("one", None, "stdin", 1),
    Text("two", None, "stdin", 2),
  ]
  assert text_lines.total_bytes(["-"]) == 0


def test_given_texts(tmp_path, monkeypatch):
  stdin = io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbf{}\r\n \ncaf\xe9\n"))
  monkeypatch.setattr(sys, "stdin", stdin)
  lines = text_lines.given_texts([], "-")
  assert next(lines) == ({"line": 1}, "{}")
  with pytest.raises(DataError, match="stdin:3: not UTF-8"):
    next(lines)
  path = write(tmp_path, b"\n\none\n")
  assert list(text_lines.given_texts([], path)) == [({"line": 3}, "one")]
  assert list(text_lines.given_texts(["a", " ", "b"], path)) == [
    ({}, "a"),
    ({}, "b"),
  ]


def test_on_a_terminal_each_text_is_answered_at_once(monkeypatch):
  def grouped(texts, path):
    return list(text_lines.request_groups([1, 2, 3], 2, texts, [path]))

  assert grouped([], "-") == grouped(["a"], "a.txt") == [[1, 2], [3]]
  monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
  assert grouped([], "-") == [[1], [2], [3]]
  assert grouped(["a"], "-") == grouped([], "a.txt") == [[1, 2], [3]]


@pytest.mark.parametrize(
  ("line", "match"),
  [
    (b'{"txet": "a"}', r":2: no 'text' or 'tokens'; .* mean \"txet\".*--field"),
    (b'{"text": 3}', r":2: 'text' is '3'; expected a text, as in"),
    (b"{}", r":2: no 'text' or 'tokens'; there are no fields"),
    (b'{"tokens": ["a", 3]}', r":2: 'tokens' is .*; expected a list of texts"),
    (b'{"tokens": "a b"}', r":2: 'tokens' is 'a b'; expected a list of texts"),
    (b'["a"]', r":2: a JSON list; expected an object"),
    (b'{"text": "a"', r":2: not JSON"),
    (b"\xe9", r":2: not UTF-8 .* iconv"),
  ],
)
def test_bad_objects(tmp_path, line, match):
  path = write(tmp_path, b'{"text": "good"}\n' + line + b"\n", "a.jsonl")
  with pytest.raises(DataError, match=r"a\.jsonl" + match):
    list(text_lines.read_texts([path]))


def test_tables_are_read_by_their_header(tmp_path):
  """As by --data: whatever the file is, a row is the text of its column."""
  rows = [{"id": 7, "text": "a, b"}, {"id": 8, "text": "c"}]
  for name, content in (
    ("a.csv", 'id,text\n7,"a, b"\n8,c\n'),
    ("a.tsv", "text\tid\na, b\t7\nc\t8\n"),
    ("a.json", json.dumps(rows)),
    ("b.json", json.dumps(rows, indent=2)),
    ("a.jsonl", json.dumps(rows[0]) + "\n" + json.dumps(rows[1])),
  ):
    path = write(tmp_path, content.encode(), name)
    assert [x.text for x in text_lines.read_texts([path])] == ["a, b", "c"]
    found = text_lines.given_texts([], path, json.loads)
    assert [x["text"] for _, x in found] == ["a, b", "c"]
  lines = write(tmp_path, b"a b\tc\nid\ttext\n", "d.txt")
  found = list(text_lines.given_texts([], lines))
  assert found == [({"line": 1}, "a b\tc"), ({"line": 2}, "id\ttext")]
  named = write(tmp_path, b"review\tx\na\tb\n", "e.tsv")
  assert len([*text_lines.given_texts([], named)]) == 1


def test_files_of_words_are_labelled_data(tmp_path):
  path = write(tmp_path, b"1\ta\tO\n", "a.conllu")
  with pytest.raises(
    DataError, match=r"a word on each line .* --data=.*conllu"
  ):
    list(text_lines.read_texts([path]))


def test_sequences_keep_their_names(tmp_path):
  content = b">a label=x of y\nACg\nTN\n\n>b/2 label=y\nMKV\n"
  path = write(tmp_path, gzip.compress(content), "a.fa.gz")
  assert list(text_lines.read_texts([path])) == [
    Text("ACGTN", None, path, 1, "a"),
    Text("MKV", None, path, 5, "b/2"),
  ]
  found = list(text_lines.given_texts([], path, json.loads))
  fields = {"label": "x", "id": "a", "text": "ACGTN"}
  assert found[0] == ({"line": 1, "id": "a"}, fields)
  examples = texts.read_examples(path, texts.FileLayout(text=("text",)))
  assert [(x.text, x.label) for x in examples] == [("ACGTN", "x"), ("MKV", "y")]
  twice = write(tmp_path, b">a\nAC\n>a\nAC\n", "b.fasta")
  with pytest.raises(DataError, match=r"b.fasta:3: a second record 'a'"):
    list(text_lines.read_texts([twice]))
