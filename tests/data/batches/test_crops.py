"""Crops of documents longer than a row: anywhere in them, by the step."""

import numpy as np

from helpers.splits import (
  FIRST_ID,
  SPECIAL,
  make_config,
  make_corpus,
  make_data,
)
from maskedlm.data.batches import text_rows

SIZES = [40, 3, 11, 12, 7]  # A row of 13 has room for 11.
STARTS = np.cumsum([0, *SIZES])


def _batches(tmp_path, *, pack=False):
  ids = iter(range(FIRST_ID, 100))
  documents = [[[next(ids) for _ in range(size)]] for size in SIZES]
  corpus = make_corpus(tmp_path, documents)
  data = make_data(length=13, batch_size=9)
  return text_rows.document_batches(
    make_config(data), corpus, (0, 1), pack=pack, crop=True
  )


def _texts(batch):
  """Returns the places of the tokens of each segment, and checks its ends."""
  found = []
  for ids, segments in zip(
    batch["input_ids"], batch["segment_ids"], strict=True
  ):
    for segment in range(1, segments.max() + 1):
      row = ids[segments == segment]
      assert (row[0], row[-1]) == (SPECIAL.cls, SPECIAL.sep)
      found.append(row[1:-1] - FIRST_ID)
  return found


def test_rows_of_long_documents_begin_anywhere(tmp_path):
  made = _batches(tmp_path)
  # 40 takes four rows and 12 two; the others fit.
  assert made.rows_per_epoch == 4 + 1 + 1 + 2 + 1 == 9
  begins = {0: set(), 3: set()}
  for step in range(200):
    rows = _texts(made.batch_at("train", step))
    documents = [np.searchsorted(STARTS, x[0], "right") - 1 for x in rows]
    assert sorted(documents) == [0] * 4 + [1, 2, 3, 3, 4]
    for x, document in zip(rows, documents, strict=True):
      assert np.all(np.diff(x) == 1)
      assert STARTS[document] <= x[0] and x[-1] < STARTS[document + 1]
      assert len(x) == min(SIZES[document], 11)
      if document in begins:
        begins[document].add(int(x[0] - STARTS[document]))
  # Every place of a crop of 11: 40 - 11 + 1 and 12 - 11 + 1.
  assert begins == {0: {*range(30)}, 3: {0, 1}}


def test_crops_are_a_function_of_the_step(tmp_path):
  for pack in (False, True):
    a, b = (_batches(tmp_path / f"{i}{pack}", pack=pack) for i in range(2))
    for step in (7, 0, 7):
      one, two = (x.batch_at("train", step) for x in (a, b))
      for name, values in one.items():
        np.testing.assert_array_equal(values, two[name], err_msg=name)
    texts = _texts(a.batch_at("train", 0))
    assert sorted(map(len, texts))[-1] == 11
