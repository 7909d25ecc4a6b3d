"""Parquet: the texts of a column, rows with named classes, damaged files."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maskedlm.core.errors import CorpusError
from maskedlm.data.sources import parquet, reader

TEXTS = ["One.\r\nTwo.", None, "", "Grün\0 ist 字.\n\nStill the same."]
# What these become: a record is a document, whatever blank lines it has.
DOCUMENTS = [["One.", "Two."], ["Grün ist 字.", "Still the same."]]


def write(path, **columns):
  pq.write_table(pa.table(columns), path, row_group_size=3)
  return path


def read(source, text_field="text"):
  report = Counter()
  found = reader.read_documents(source, text_field=text_field, report=report)
  return list(found), dict(report)


@pytest.mark.parametrize(
  "type_",
  [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.dictionary(pa.int32(), pa.string()),
  ],
  ids=str,
)
def test_a_record_is_a_document_whatever_the_type_of_text(tmp_path, type_):
  column = pa.array(TEXTS, pa.string())
  column = (
    column.dictionary_encode()
    if pa.types.is_dictionary(type_)
    else column.cast(type_)
  )
  path = write(tmp_path / "a.parquet", number=[0, 1, 2, 3], text=column)
  found, report = read(f"parquet:{path}")
  assert found == DOCUMENTS
  assert report["records dropped without a text in 'text'"] == 1
  assert report["empty documents dropped"] == 1
  assert report["NUL characters removed"] == 1
  assert report["files read"] == 1
  assert report["bytes read"] == sum(len((t or "").encode()) for t in TEXTS)


def test_globs_folders_and_pieces(tmp_path):
  (tmp_path / "x/y").mkdir(parents=True)
  for number, name in enumerate(("x/b.parquet", "x/y/c.parquet", "x/a.bin")):
    write(tmp_path / name, body=[f"Text {number}."])
  (tmp_path / "x/notes.txt").write_text("Not Parquet.")
  source = f"parquet:{tmp_path}/x/a.bin,{tmp_path}/x"
  found, _ = read(source, "body")
  assert found == [["Text 2."], ["Text 0."], ["Text 1."]]
  pieces = reader.list_pieces(source, text_field="body", num_bytes=1)
  assert len(pieces) == 3
  assert found == [
    document
    for piece in pieces
    for document in reader.read_piece(
      source, piece, text_field="body", report=Counter()
    )
  ]


def test_bytes_that_are_not_utf_8_are_repaired_and_counted(tmp_path):
  odd = pa.array([b"A \xff byte."]).cast(pa.binary())
  # Unchecked, as other writers of Parquet do.
  text = pa.StringArray.from_buffers(1, odd.buffers()[1], odd.buffers()[2])
  path = write(tmp_path / "a.parquet", text=text)
  found, report = read(f"parquet:{path}")
  assert found == [["A \ufffd byte."]]
  assert (
    report["invalid UTF-8 bytes or lone surrogates replaced by U+FFFD"] == 1
  )


def test_memory_is_bounded_by_the_batch_not_the_row_group(tmp_path):
  rng = np.random.default_rng(0)
  words = [rng.bytes(2_000).hex() for _ in range(10_000)]
  path = tmp_path / "a.parquet"
  table = pa.table({"text": words})
  # One row group of 40 MB, of pages of 64 kB.
  pq.write_table(table, path, data_page_size=1 << 16, use_dictionary=False)
  size, table = table.nbytes, None
  before = pa.total_allocated_bytes()
  most = 0
  for _ in parquet.read_texts(str(path), "text"):
    most = max(most, pa.total_allocated_bytes() - before)
  assert size > 40_000_000
  assert most < 10_000_000  # 6 MB of buffers and the batch.


def test_classes_have_their_names(tmp_path):
  # As the library datasets writes its features beside the schema.
  features = {
    "label": {"names": ["negative", "positive"], "_type": "ClassLabel"},
    "text": {"dtype": "string", "_type": "Value"},
    "tokens": [{"dtype": "string", "_type": "Value"}],
    "labels": {
      "feature": {"names": ["joy", "fear"], "_type": "ClassLabel"},
      "_type": "List",
    },
    "tags": [{"names": ["O", "B"], "_type": "ClassLabel"}],
  }
  table = pa.table(
    {
      "text": ["Good.", "Bad.", "?", None],
      "label": [1, 0, -1, None],
      "tokens": [["Good", "."], [], [], []],
      "labels": [[1, 0], [], None, [1]],
      "tags": [[0, -1, None], [], [], []],
    }
  ).replace_schema_metadata(
    {"huggingface": json.dumps({"info": {"features": features}})}
  )
  pq.write_table(table, tmp_path / "a.parquet")
  found = list(parquet.read_rows(str(tmp_path / "a.parquet")))
  assert [row["label"] for row in found] == ["positive", "negative", "", None]
  assert found[0]["tokens"] == ["Good", "."]
  named = [row["labels"] for row in found]
  assert named == [["fear", "joy"], [], None, ["fear"]]
  assert found[0]["tags"] == ["O", "", None]


@pytest.mark.parametrize(
  "told",
  [
    "null",
    '{"info": null}',
    "not JSON",
    '{"info": {"features": {"label": {"_type": "ClassLabel"}}}}',
  ],
)
def test_classes_that_nobody_can_name_are_numbers(tmp_path, told):
  table = pa.table({"label": [1]}).replace_schema_metadata(
    {"huggingface": told}
  )
  pq.write_table(table, tmp_path / "a.parquet")
  assert list(parquet.read_rows(str(tmp_path / "a.parquet"))) == [{"label": 1}]


def test_a_column_that_is_there_twice_is_told(tmp_path):
  table = pa.Table.from_arrays([pa.array(["a"])] * 2, names=["text", "text"])
  pq.write_table(table, tmp_path / "a.parquet")
  with pytest.raises(CorpusError, match="has the column 'text' twice"):
    read(f"parquet:{tmp_path}")


@pytest.mark.parametrize(
  ("make", "told"),
  [
    (lambda path: path.write_text("Not Parquet at all."), "magic bytes"),
    (lambda path: path.write_bytes(b""), "size is 0 bytes"),
    (
      lambda path: path.write_bytes(
        write(path, text=["x" * 99] * 999).read_bytes()[:-50]
      ),
      "magic bytes",
    ),
    (
      lambda path: write(path, title=["a"], texts=["b"], n=[[1]]),
      "no text in corpus.text_field='text'.*did you mean .texts..*"
      "a record has texts, title",
    ),
    (lambda path: write(path, text=[[1, 2]]), "a record has no fields"),
  ],
)
def test_a_file_that_holds_no_text_is_told(tmp_path, make, told):
  path = tmp_path / "a.parquet"
  make(path)
  with pytest.raises(CorpusError, match=told):
    read(f"parquet:{tmp_path}")


def test_parquet_given_as_text_is_told_what_to_write(tmp_path):
  path = write(tmp_path / "a.parquet", text=["a"])
  with pytest.raises(CorpusError, match="parquet:GLOB"):
    read(f"text:{path}")
