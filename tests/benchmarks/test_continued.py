"""The texts of benchmarks/continued.py are those of its tasks."""

import continued
import pytest


def test_empty_lines_separate_sentences():
  assert list(continued.sentences("\na X\n\n \nb Y Z\nc\tW\tV")) == [
    [["a", "X"]],
    [["b", "Y", "Z"], ["c", "W", "V"]],
  ]


@pytest.mark.parametrize(
  "kind, documents, words, columns",
  [("academic", 4, 4_021, 2), ("tweets", 1_009, 15_733, 2)],
)
def test_held_out_documents(data_dir, kind, documents, words, columns):
  found = list(continued.read_documents(kind, "heldout"))
  found = [list(continued.sentences(x)) for x in found if x.strip()]
  rows = [row for document in found for words in document for row in words]
  assert len(found) == documents and len(rows) == words
  assert {len(row) for row in rows} == {columns}


def test_novels_have_as_many_columns_in_all_files(data_dir):
  train, heldout = (
    list(continued.read_documents("novels", x)) for x in ("train", "heldout")
  )
  assert (len(train), len(heldout)) == (63, 10)
  for document in [*train, *heldout]:
    widths = {
      len(row) for words in continued.sentences(document) for row in words
    }
    assert widths == {1 + continued.DEEPEST}
