"""Files of labelled examples: formats, and errors in one line."""

import decimal
import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import tables


def write(path, content):
  path.write_bytes(
    content if isinstance(content, bytes) else content.encode("utf-8")
  )
  return path


def records(path, **options):
  return list(tables.read_records(path, **options))


def found(path, **options):
  return [(r.line, r.fields) for r in records(path, **options)]


def test_quotes_in_tsv_are_text(tmp_path):
  path = write(
    tmp_path / "a.tsv",
    b'\xef\xbb\xbftext\tlabel\r\nHe said "no .\t1\r\n\n"Yes"\t0',
  )
  assert found(path) == [
    (2, {"text": 'He said "no .', "label": "1"}),
    (4, {"text": '"Yes"', "label": "0"}),
  ]
  assert records(path)[1].where == f"{path}:4"
  assert tables.read_first_row(path) == ["text", "label"]


def test_only_newlines_end_a_row(tmp_path):
  # U+2028, U+0085 and form feeds are whitespace within a text.
  text = "a\u2028b\x85c\x0cd\re"
  path = write(tmp_path / "a.tsv", f"text\tlabel\n{text}\t1\n")
  assert found(path) == [(2, {"text": text, "label": "1"})]


def test_csv_quotes(tmp_path):
  path = write(
    tmp_path / "a.csv",
    'text,label\n"one, ""two""\nthree",x\n\nfour,"y"\n',
  )
  # The line is the first one of the row.
  assert found(path) == [
    (2, {"text": 'one, "two"\nthree', "label": "x"}),
    (5, {"text": "four", "label": "y"}),
  ]


def test_a_csv_field_may_be_long(tmp_path):
  text = "word, " * 50_000  # More than csv's default of 131,072.
  path = write(tmp_path / "a.csv", f'text,label\n"{text}",x\n')
  assert found(path) == [(2, {"text": text, "label": "x"})]


def test_jsonl(tmp_path):
  rows = [
    {"text": "é\n", "label": True, "n": 3, "x": None, "l": ["a"]},
    {"text": "b"},
  ]
  path = write(
    tmp_path / "a.jsonl", "\n".join(["", *map(json.dumps, rows)]) + "\n"
  )
  assert found(path) == [
    (2, {"text": "é\n", "label": True, "n": 3, "x": None, "l": ["a"]}),
    (3, {"text": "b"}),
  ]
  assert [tables.get_field(records(path)[0], x) for x in rows[0]] == [
    *("é\n", "true", "3", "", '["a"]')
  ]
  assert tables.read_first_row(path) == ["text", "label", "n", "x", "l"]


def test_parquet(tmp_path):
  rows = [
    {"text": "é\n", "label": True, "n": 3, "x": None, "l": ["a"]},
    {"text": "b", "label": False, "n": 4, "x": "y", "l": []},
  ]
  path = tmp_path / "a.parquet"
  pq.write_table(pa.Table.from_pylist(rows), path)
  assert found(path) == [(1, rows[0]), (2, rows[1])]
  assert tables.read_first_row(path) == ["text", "label", "n", "x", "l"]
  assert records(path)[1].where == f"{path}:2"
  pq.write_table(pa.table({"text": pa.array([], pa.string())}), path)
  with pytest.raises(DataError, match="has no row"):
    records(path)
  odd = {"text": b"\xc3\xa9", "label": decimal.Decimal("1.50")}
  pq.write_table(pa.Table.from_pylist([odd]), path)
  assert found(path) == [(1, {"text": "é", "label": "1.50"})]
  pq.write_table(
    pa.Table.from_pylist([{"text": b"a"}, {"text": b"\xff"}]), path
  )
  with pytest.raises(DataError, match=r"a\.parquet:2: .* is not UTF-8"):
    records(path)
  path.write_bytes(path.read_bytes()[:-9])
  with pytest.raises(DataError, match=r"a\.parquet can't be read as Parquet"):
    records(path)
  with pytest.raises(DataError, match=r"none\.parquet: No such file"):
    records(tmp_path / "none.parquet")


def test_a_file_without_a_header(tmp_path):
  path = write(tmp_path / "a.txt", "1\tx\n0\ty\n")
  expected = [
    (1, {"label": "1", "text": "x"}),
    (2, {"label": "0", "text": "y"}),
  ]
  assert found(path, header=("label", "text")) == expected


def test_ragged_rows_can_be_skipped(tmp_path):
  path = write(tmp_path / "a.tsv", "a\tb\n1\n2\t3\n4\t5\t6\n")
  errors = []
  assert found(path, ragged=errors.append) == [(3, {"a": "2", "b": "3"})]
  assert [str(e).split(" the row has ")[1][:9] for e in errors] == [
    "1 column;",
    "3 columns",
  ]


@pytest.mark.parametrize(
  ("name", "content", "message"),
  [
    ("a.tsv", "", "a.tsv: the file is empty"),
    ("a.csv", "", "a.csv: the file is empty"),
    ("a.jsonl", "", "a.jsonl: the file is empty"),
    ("a.tsv", "text\tlabel\n", "a.tsv: has no row"),
    ("a.jsonl", "\n\n", "a.jsonl: has no row"),
    (
      "a.tsv",
      b"a\tb\nx\ty\nna\xefve\tz\n",
      "a.tsv:3: not UTF-8 (byte 0xef at 3",
    ),
    ("a.csv", b"a,b\nx,y\n\xff,z\n", "a.csv:3: not UTF-8 (byte 0xff at 1"),
    ("a.jsonl", b'{"a": "b"}\n{"a": "\xff"}', "a.jsonl:2: not UTF-8"),
    (
      "a.tsv",
      "a\tb\nx\ty\nz\n",
      "a.tsv:3: the row has 1 column; expected 2 (a",
    ),
    ("a.csv", "a,b\nx,y,z\n", "a.csv:2: the row has 3 columns; expected 2"),
    ("a.csv", 'a,b\nx,y\n"z,1\nw,0\n', "a.csv:3: the row that begins here"),
    ("a.csv", 'a,b\n"x"y,1\n', "a.csv:2: the row that begins here"),
    ("a.tsv", "a\tb\ta\n1\t2\t3\n", "a.tsv:1: the column 'a' occurs twice"),
    ("a.jsonl", '{"a": 1}\n{"a": 1\n', "a.jsonl:2: not JSON ("),
    ("a.jsonl", "[1]\n", "a.jsonl:1: a JSON int; expected an object"),
    pytest.param(
      "a.jsonl", "{}\n" + '{"a":' * 10**5, "a.jsonl:2: not JSON (", id="deep"
    ),
    ("a.xlsx", "x", "a.xlsx: the name ends in '.xlsx'; expected .tsv"),
  ],
)
def test_errors_are_one_line(tmp_path, name, content, message):
  path = write(tmp_path / name, content)
  with pytest.raises(DataError) as error:
    records(path)
  assert message in str(error.value)
  assert "\n" not in str(error.value)


@pytest.mark.parametrize("suffix", ["tsv", "txt", "csv", "jsonl"])
def test_a_file_of_blank_lines_has_no_row(tmp_path, suffix):
  path = write(tmp_path / f"a.{suffix}", "\n\n")
  for read in (tables.read_first_row, records):
    with pytest.raises(DataError, match=rf"a\.{suffix}: has no row"):
      read(path)


def test_no_such_file(tmp_path):
  with pytest.raises(DataError, match="No such file"):
    records(tmp_path / "none.tsv")


def test_a_missing_column_is_named_with_the_others(tmp_path):
  path = write(tmp_path / "a.tsv", "text\tlable\nx\t1\n")
  record = records(path)[0]
  assert tables.get_field(record, "sentence", "text") == "x"
  with pytest.raises(DataError) as error:
    tables.get_field(record, "label")
  assert str(error.value) == (
    f"{path}:2: no column 'label'; there are 'text', 'lable'; did you mean "
    '"lable"?'
  )


# --- What programs write ---


def told_of(path, **options):
  told = []
  rows = [
    r.fields for r in tables.read_records(path, told=told.append, **options)
  ]
  return rows, told


@pytest.mark.parametrize(
  ("name", "content"),
  [
    ("pandas.tsv", 'text\tlabel\n"He said ""no"""\t1\n'),
    ("lines.tsv", 'text\tlabel\n"He said ""no"""\t1\n"two\nlines"\t1\n'),
    ("r.tsv", '"text"\t"label"\n"He said ""no"""\t"1"\n'),
    ("r_names.tsv", '"text"\t"label"\n"1"\t"He said ""no"""\t"1"\n'),
    ("excel.csv", 'text;label\n"He said ""no""";1\n'),
    ("sep.csv", 'sep=;\ntext;label\n"He said ""no""";1\n'),
    ("index.csv", ',text,label\n0,"He said ""no""",1\n'),
    ("ends.csv", 'text,label,,\n"He said ""no""",1,,\n'),
    ("padded.csv", 'text,label\n"He said ""no""",1,,\n'),
    ("tabs.csv", 'text\tlabel\n"He said ""no"""\t1\n'),
    ("raw.tsv", 'text\tlabel\nHe said "no"\t1\n'),
    ("old_mac.csv", 'text,label\r"He said ""no""",1\r'),
  ],
)
def test_one_row_as_programs_write_it(tmp_path, name, content):
  rows, _ = told_of(write(tmp_path / name, content))
  assert rows[0] == {"text": 'He said "no"', "label": "1"}


def test_quotes_that_may_be_text_are_reported(tmp_path):
  path = write(tmp_path / "a.tsv", 'text\tlabel\n"Yes, sir."\t1\n"No."\t0\n')
  rows, told = told_of(path)
  assert [row["text"] for row in rows] == ['"Yes, sir."', '"No."']
  assert len(told) == 1 and "2 fields in quotation marks" in told[0]


@pytest.mark.parametrize(
  ("rows", "texts"),
  [
    # Not all of them had to be quoted, but one says that they are.
    (['"He ""x"""\t1', '"y"\t0'], ['He "x"', "y"]),
    # A text that begins, and another that ends with a quotation mark.
    (['"Go away\tshe said"', "fine\t1"], ['"Go away', "fine"]),
    (['"a ""b""" c\t1', '"d ""e"""\t0'], ['"a ""b""" c', '"d ""e"""']),
    (['"open\t1', "b\t2"], ['"open', "b"]),
  ],
)
def test_quotes_of_a_tsv(tmp_path, rows, texts):
  path = write(tmp_path / "a.tsv", "\n".join(["text\tlabel", *rows, ""]))
  assert [row["text"] for row in told_of(path)[0]] == texts


def test_a_header_beside_task_header(tmp_path):
  path = write(tmp_path / "a.csv", "text,label\none,1\n")
  assert told_of(path, header=("text", "label")) == (
    [{"text": "one", "label": "1"}],
    [],
  )
  rows, told = told_of(path, header=("label", "text"))
  assert rows == [{"text": "one", "label": "1"}] and "header line" in told[0]
  path = write(tmp_path / "a.jsonl", '{"text": "one"}\n')
  rows, told = told_of(path, header=("label", "text"))
  assert rows == [{"text": "one"}] and "header has no effect" in told[0]
  path = write(tmp_path / "b.csv", "one,1\ntwo,0\n")
  rows, _ = told_of(path, header=("text", "label"))
  assert [row["text"] for row in rows] == ["one", "two"]
  # Other names than the file's.
  path = write(tmp_path / "d.csv", "sentence,class\none,1\n")
  rows, told = told_of(path, header=("text", "label"))
  assert rows == [{"text": "one", "label": "1"}] and "d.csv:1: " in told[0]
  # Files that were put together.
  path = write(tmp_path / "c.csv", "text,label\none,1\ntext,label\ntwo,0\n")
  rows, told = told_of(path)
  assert [row["text"] for row in rows] == ["one", "two"]
  assert "c.csv:3: 1 repetition of the header" in told[0]


def test_spaces_after_separators(tmp_path):
  path = write(tmp_path / "a.csv", 'label, text\na, "x, y"\nb,  z\n')
  assert [row["text"] for row in told_of(path)[0]] == ["x, y", "z"]
  path = write(tmp_path / "b.csv", "label,text\na, z\n")
  assert [row["text"] for row in told_of(path)[0]] == [" z"]


def test_files_are_known_by_their_bytes(tmp_path):
  pq.write_table(pa.table({"text": ["one"]}), tmp_path / "a.csv")
  assert told_of(tmp_path / "a.csv")[0] == [{"text": "one"}]
  write(tmp_path / "b.csv", gzip.compress(b"text\none\n"))
  assert told_of(tmp_path / "b.csv")[0] == [{"text": "one"}]
  for data, name in (
    (b"PK\x03\x04...", "Excel"),
    ("text\none\n".encode("utf-16"), "iconv -f utf-16 "),
    (
      gzip.compress(b"text\none\n" * 99, mtime=0)[:-9],
      "decompressed to its end",
    ),
    (b"<html><body>Sign in</body></html>", "HTML"),
    ("text\ndon’t\n".encode("cp1252"), "iconv -f cp1252 "),
  ):
    with pytest.raises(DataError, match=name):
      told_of(write(tmp_path / "c.csv", data))


@pytest.mark.parametrize(
  ("content", "lines"),
  [
    ('[{"text": "a"}, {"text": "b"}]', [1, 1]),
    ('[\n {"text": "a"},\n {"text":\n "b"}\n]\n', [2, 3]),
    ('{"data": [{"text": "a"},\n{"text": "b"}], "version": "1"}', [1, 2]),
    ('{"text": "a"}\n\n{"text": "b"}\n', [1, 3]),
  ],
)
def test_json(tmp_path, content, lines):
  path = write(tmp_path / "a.json", content)
  assert found(path) == [
    (line, {"text": text}) for line, text in zip(lines, "ab", strict=True)
  ]


@pytest.mark.parametrize(
  ("content", "message"),
  [
    ('[{"text": "a"}] [{"text": "b"}]', "a.json:1: more follows"),
    ('[{"text": "a"},\n{"text": "b"', "a.json:2: not JSON"),
    ('{"text": "a", "text": "b"}', "'text' occurs twice"),
    ("3", "a JSON int; expected an object"),
  ],
)
def test_bad_json(tmp_path, content, message):
  with pytest.raises(DataError, match=message):
    records(write(tmp_path / "a.json", content))


def test_texts_that_are_none_are_refused_in_every_format(tmp_path):
  write(tmp_path / "a.csv", 'text,label\n"",1\n')
  write(tmp_path / "a.jsonl", '{"text": null}\n')
  pq.write_table(
    pa.table({"text": pa.array([None], pa.string())}), tmp_path / "a.parquet"
  )
  for path in tmp_path.iterdir():
    (record,) = records(path)
    where = f"{record.where}: the text is (null|empty); expected a text"
    with pytest.raises(DataError, match=where):
      tables.get_text(record, "text")
  for value, kind in (
    ([], "a list"),
    ({}, "an object"),
    (float("nan"), "null"),
  ):
    path = write(tmp_path / "b.jsonl", json.dumps({"text": value}))
    with pytest.raises(DataError, match=f"b.jsonl:1: the text is {kind}"):
      tables.get_text(records(path)[0], "text")
  for value, text in ((3, "3"), (True, "true"), (1.5, "1.5")):
    path = write(tmp_path / "b.jsonl", json.dumps({"text": value}))
    assert tables.get_text(records(path)[0], "text") == text


def test_texts_that_may_be_none_are_reported():
  odd, told = {}, []
  for i, text in enumerate(("NaN", "NaN", "['a', 'b']", "[a] b", "fine"), 1):
    record = tables.Record(i, {"text": text}, "f")
    assert tables.get_text(record, "text", odd=odd) == text
  tables.report_odd(odd, told.append)
  assert [line.split(";")[0] for line in told] == [
    "f:1: 2 of the column 'text' are 'NaN'",
    "f:3: 1 of the column 'text' look like a list or an object",
  ]


def test_lines_of_input_that_are_objects():
  assert tables.is_object('{"text": 1}') and tables.is_object("{}")
  assert not tables.is_object("{laughs} no") and not tables.is_object("a {")
