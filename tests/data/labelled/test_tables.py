"""Files of labelled examples: formats, and errors in one line."""

import decimal

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


def test_only_newlines_end_a_row(tmp_path):
  # U+2028, U+0085 and form feeds are whitespace within a text.
  text = "a\u2028b\x85c\x0cd\re"
  path = write(tmp_path / "a.tsv", f"text\tlabel\n{text}\t1\n")
  assert found(path) == [(2, {"text": text, "label": "1"})]


def test_a_csv_field_may_be_long(tmp_path):
  text = "word, " * 50_000  # More than csv's default of 131,072.
  path = write(tmp_path / "a.csv", f'text,label\n"{text}",x\n')
  assert found(path) == [(2, {"text": text, "label": "x"})]


def test_parquet(tmp_path):
  rows = [
    {"text": "é\n", "label": True, "n": 3, "x": None, "l": ["a"]},
    {"text": "b", "label": False, "n": 4, "x": "y", "l": []},
  ]
  path = tmp_path / "a.parquet"
  pq.write_table(pa.Table.from_pylist(rows), path)
  assert found(path) == [(1, rows[0]), (2, rows[1])]
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


def test_a_missing_column_is_named_with_the_others(tmp_path):
  path = write(tmp_path / "a.tsv", "text\tlable\nx\t1\n")
  record = records(path)[0]
  assert tables.get_field(record, "sentence", "text") == "x"
  with pytest.raises(DataError) as error:
    tables.get_field(record, "label")
  assert str(error.value) == (
    f"{path}:2: no 'label'; there are 'text', 'lable' (did you mean "
    '"lable"?); expected a column of that name.'
  )


# --- What programs write ---


def told_of(path, capsys, **options):
  rows = [r.fields for r in tables.read_records(path, **options)]
  return rows, capsys.readouterr().err.splitlines()


def test_quotes_of_a_tsv_that_may_be_text_are_reported(tmp_path, capsys):
  path = write(tmp_path / "a.tsv", 'text\tlabel\n"Yes, sir."\t1\n"No."\t0\n')
  rows, told = told_of(path, capsys)
  assert [row["text"] for row in rows] == ['"Yes, sir."', '"No."']
  assert len(told) == 1 and "2 fields in quotation marks" in told[0]
  # A text that begins, and another that ends with one: nothing is quoted.
  for rows in (
    ['"Go away\tshe', "fine\t1"],
    ['"a ""b""" c\t1', '"d ""e"""\t0'],
  ):
    path = write(tmp_path / "a.tsv", "\n".join(["text\tlabel", *rows, ""]))
    texts = [row["text"] for row in told_of(path, capsys)[0]]
    assert texts == [row.split("\t")[0] for row in rows]


def test_a_header_beside_task_header(tmp_path, capsys):
  path = write(tmp_path / "a.csv", "text,label\none,1\n")
  row = {"text": "one", "label": "1"}
  assert told_of(path, capsys, header=("text", "label")) == ([row], [])
  rows, told = told_of(path, capsys, header=("label", "text"))
  assert rows == [row] and "header line" in told[0]
  path = write(tmp_path / "a.jsonl", '{"text": "one"}\n')
  rows, told = told_of(path, capsys, header=("label", "text"))
  assert rows == [{"text": "one"}] and "header has no effect" in told[0]


@pytest.mark.parametrize(
  ("content", "lines"),
  [
    ('[{"text": "a"}, {"text": "b"}]', [1, 2]),
    ('[\n {"text": "a"},\n {"text":\n "b"}\n]\n', [1, 2]),
    ('{"data": [{"text": "a"},\n{"text": "b"}], "version": "1"}', [1, 2]),
    ('{"text": "a"}\n\n{"text": "b"}\n', [1, 3]),
    ('{"x": {"data": [1]}, "data":\n[{"text": "a"}, {"text": "b"}]}', [1, 2]),
  ],
)
def test_json(tmp_path, content, lines):
  path = write(tmp_path / "a.json", content)
  assert found(path) == [
    (line, {"text": text}) for line, text in zip(lines, "ab", strict=True)
  ]


def test_texts_that_may_be_none_are_reported(tmp_path, capsys):
  texts = ["NaN", "NaN", "['a', 'b']", "[a] b", "fine"]
  path = write(tmp_path / "a.txt", "\n".join(["text", *texts, ""]))
  records = tables.read_records(path)
  assert [tables.get_text(record, "text") for record in records] == texts
  told = capsys.readouterr().err.splitlines()
  assert [line.split(";")[0] for line in told] == [
    f"{path}:2: 2 of the column 'text' are 'NaN'",
    f"{path}:4: 1 of the column 'text' look like a list or an object",
  ]
