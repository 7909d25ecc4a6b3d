"""Parquet: the texts of a column, rows with named classes, damaged files."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.read_source import INVALID, read, read_pieces
from maskedlm.core.errors import CorpusError
from maskedlm.data.sources import parquet

TEXTS = ["One.\r\nTwo.", None, "", "Grün\0 ist 字.\n\nStill the same."]
# A record is a document, even if it has blank lines.
DOCUMENTS = [["One.", "Two."], ["Grün ist 字.", "", "Still the same."]]


def write(path, **columns):
  pq.write_table(pa.table(columns), path, row_group_size=3)
  return path


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
def test_a_record_is_a_document_for_every_type_of_text(tmp_path, type_):
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
  pieces, again, _ = read_pieces(source, "body")
  assert len(pieces) == 3 and again == found


def test_bytes_that_are_not_utf_8_are_repaired_and_counted(tmp_path):
  odd = pa.array([b"A \xff byte."]).cast(pa.binary())
  # Not checked, as by some writers of Parquet.
  text = pa.StringArray.from_buffers(1, odd.buffers()[1], odd.buffers()[2])
  path = write(tmp_path / "a.parquet", text=text)
  found, report = read(f"parquet:{path}")
  assert found == [["A \ufffd byte."]]
  assert report[INVALID] == 1


def test_memory_is_bounded_by_the_batch_not_the_row_group(tmp_path):
  rng = np.random.default_rng(0)
  words = [rng.bytes(2_000).hex() for _ in range(10_000)]
  path = tmp_path / "a.parquet"
  table = pa.table({"text": words})
  # One row group of 40 MB, with pages of 64 kB.
  pq.write_table(table, path, data_page_size=1 << 16, use_dictionary=False)
  size, table = table.nbytes, None
  before = pa.total_allocated_bytes()
  most = 0
  for _ in parquet.read_texts(str(path), "text"):
    most = max(most, pa.total_allocated_bytes() - before)
  assert size > 40_000_000
  assert most < 10_000_000  # 6 MB of buffers and the batch.


def test_classes_have_their_names(tmp_path):
  # As Hugging Face's datasets stores its features with the schema.
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
  labels = [row["labels"] for row in found]
  assert labels == [["fear", "joy"], [], None, ["fear"]]
  assert found[0]["tags"] == ["O", "", None]


@pytest.mark.parametrize(
  ("make", "message"),
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
def test_a_file_without_text_is_an_error(tmp_path, make, message):
  path = tmp_path / "a.parquet"
  make(path)
  with pytest.raises(CorpusError, match=message):
    read(f"parquet:{tmp_path}")
