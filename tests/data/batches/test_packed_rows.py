"""Packed rows: segments are unchanged, pairs fit, tables are kept."""

import os

import numpy as np
import pytest

from helpers import splits
from helpers.splits import (
  FIRST_ID,
  SPECIAL,
  make_corpus,
  nsp_batches,
  random_documents,
)
from maskedlm.data import hashing
from maskedlm.data.batches import (
  batching,
  bin_packing,
  packed_rows,
  pair_rows,
  pair_table,
)

CLS, SEP, PAD = SPECIAL.cls, SPECIAL.sep, SPECIAL.pad


def test_side_by_side_by_hand():
  # Three rows of 6: two in the first packed row, one in the second.
  parts = {
    "input_ids": np.array(
      [[2, 8, 3, 0, 0, 0], [2, 9, 3, 0, 0, 0], [2, 7, 6, 5, 3, 0]]
    ),
    "token_type_ids": np.array(
      [[0, 0, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0]]
    ),
    "nsp_labels": np.array([1, 0, 1]),
  }
  parts["segment_ids"] = (parts["input_ids"] > 0).astype(int)
  used = np.array([[True, True, False], [True, False, False]])
  packed = packed_rows.side_by_side(parts, used, 6, pad=99)
  assert {name: x.tolist() for name, x in packed.items()} == {
    "input_ids": [[2, 8, 3, 2, 9, 3], [2, 7, 6, 5, 3, 99]],
    "token_type_ids": [[0, 0, 1, 0, 1, 1], [0, 0, 0, 1, 1, 0]],
    "segment_ids": [[1, 1, 1, 2, 2, 2], [1, 1, 1, 1, 1, 0]],
    "positions": [[0, 1, 2, 0, 1, 2], [0, 1, 2, 3, 4, 0]],
    "nsp_labels": [[1, 0, 0], [1, 0, 0]],
    "cls_positions": [[0, 3, 0], [0, 0, 0]],
    "segment_weights": [[1, 1, 0], [1, 0, 0]],
  }
  dtypes = {name: x.dtype for name, x in packed.items()}
  assert dtypes.pop("segment_weights") == np.float32
  assert set(dtypes.values()) == {np.dtype("int32")}


def numbered_source(lengths, L, seed):
  """Rows of these lengths; a token is 100 * its row's epoch + the row."""
  lengths = np.array(lengths)

  def read(row, epoch):
    real = np.arange(L) < lengths[row][:, None]
    return {
      "input_ids": np.where(real, (100 * epoch + row)[:, None], PAD),
      "segment_ids": real.astype(np.int32),
    }

  return batching.RowSource(len(lengths), seed, read, lengths=lambda: lengths)


def test_a_batch_may_have_rows_of_two_epochs(tmp_path):
  corpus = make_corpus(tmp_path, [])
  source = packed_rows.pack_rows(
    corpus, numbered_source([24, 15, 9, 8, 8, 7], 24, 5), length=24
  )
  assert source.num_rows == 3  # 24; 15 + 9; 8 + 8 + 7.
  batch = source.read(np.arange(3), np.array([4, 6, 5]))
  real = batch["segment_ids"] > 0
  assert sorted(batch["segment_weights"].sum(1)) == [1, 2, 3]
  for ids, here, epoch in zip(batch["input_ids"], real, (4, 6, 5), strict=True):
    assert set(ids[here] // 100) == {epoch}


LENGTH = 40
DATA = splits.make_data(length=LENGTH, long_length=56)


def make_batches(corpus, data=DATA, **options):
  return nsp_batches(corpus, data, **{"pack": True, **options})


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
  """Short documents; ids tell places; some sentences are longer than a row."""
  documents = splits.numbered(
    [
      *random_documents(6, 150, max_sentences=5, max_tokens=9),
      *random_documents(7, 20, max_sentences=9, max_tokens=60),
    ]
  )
  return documents, make_corpus(
    tmp_path_factory.mktemp("numbered"), documents, documents[100:], 3
  )


@pytest.fixture(scope="module")
def opened(numbered):
  return pair_table.open_pair_table(
    numbered[1], "train", length=LENGTH, short_share=0.1, seed=3
  )


def all_pairs(opened, num_epochs, **options):
  R = len(opened.table)
  row = np.tile(np.arange(R), num_epochs)
  epoch = np.repeat(np.arange(num_epochs), R)
  batch = pair_rows.next_sentence_pairs(
    opened, row, epoch, special=SPECIAL, **options
  )
  return row, batch


def test_a_pair_is_never_longer_than_its_row(opened):
  row, batch = all_pairs(opened, 30, draw_b=pair_rows.fitting_b)
  most = np.minimum(opened.table["num_tokens"][row], LENGTH - 3) + 3
  used = batch["segment_ids"].sum(1)
  assert (used <= most).all()
  label = batch["nsp_labels"]
  assert (used == most)[label == 0].all()
  assert used[label == 1].mean() > 0.85 * most[label == 1].mean()


def test_true_pairs_are_those_without_packing(opened):
  _, batch = all_pairs(opened, 3, draw_b=pair_rows.fitting_b)
  _, plain = all_pairs(opened, 3)
  np.testing.assert_array_equal(batch["nsp_labels"], plain["nsp_labels"])
  true = batch["nsp_labels"] == 0
  for name in plain:
    np.testing.assert_array_equal(batch[name][true], plain[name][true])


def test_a_random_b_is_contiguous_ends_a_sentence_and_is_of_another_document(
  numbered, opened
):
  documents, _ = numbered
  document = np.repeat(
    np.arange(len(documents)), [sum(map(len, d)) for d in documents]
  )
  ends = np.cumsum([len(s) for d in documents for s in d]) - 1
  starts = {0, *(ends + 1).tolist()}
  row, batch = all_pairs(opened, 8, draw_b=pair_rows.fitting_b)
  short = opened.table["num_tokens"][row] < LENGTH - 3
  several = opened.table["num_sentences"][row] > 1
  begins = []
  for i in np.flatnonzero(short & (batch["nsp_labels"] == 1)):
    ids, types_ = batch["input_ids"][i], batch["token_type_ids"][i]
    real = batch["segment_ids"][i] == 1
    a = ids[real & (types_ == 0)][1:-1] - FIRST_ID
    b = ids[real & (types_ == 1)][:-1] - FIRST_ID
    assert len(a) and len(b)
    assert (np.diff(b) == 1).all()
    assert b[-1] in ends
    assert len({*document[b]}) == 1 and document[a[0]] != document[b[0]]
    if several[i]:
      begins.append(int(b[0]) in starts)
  assert len(begins) > 300
  # The others are truncated sentences, since no whole one fitted.
  assert np.mean(begins) > 0.75


def test_packed_pairs_are_those_of_the_table(numbered, opened):
  """Segment for segment, they are the pairs of the rows alone."""
  _, corpus = numbered
  reader = make_batches(corpus)
  assert packed_rows.max_segments(LENGTH) == 5
  table = pair_table.open_pair_table(
    corpus,
    "train",
    length=LENGTH,
    short_share=0.1,
    seed=int(hashing.bits(11, "phase", 0)),  # 11 is config.seed.
  )
  R = len(table.table)
  alone = {}  # Tokens of each pair of epoch 0 -> its label.
  row = np.arange(R)
  pairs = pair_rows.next_sentence_pairs(
    table, row, 0 * row, special=SPECIAL, draw_b=pair_rows.fitting_b
  )
  for i in range(R):
    size = pairs["segment_ids"][i].sum()
    key = tuple(pairs["input_ids"][i, :size].tolist())
    kinds = tuple(pairs["token_type_ids"][i, :size].tolist())
    alone[key] = (kinds, int(pairs["nsp_labels"][i]))
  assert len(alone) == R
  found, step, several = 0, 0, 0
  while found < R:
    batch = reader.batch_at("train", step)
    step += 1
    assert batch["nsp_labels"].shape == (6, 5)
    for i in range(6):
      if found == R:
        break
      num = int(batch["segment_weights"][i].sum())
      several += num > 1
      assert batch["segment_ids"][i].max() == num
      for k in range(num):
        at = batch["segment_ids"][i] == k + 1
        key = tuple(batch["input_ids"][i][at].tolist())
        kinds, label = alone.pop(key)
        assert tuple(batch["token_type_ids"][i][at].tolist()) == kinds
        assert batch["nsp_labels"][i, k] == label
        assert batch["positions"][i][at].tolist() == list(range(len(key)))
        assert batch["cls_positions"][i, k] == np.argmax(at)
        assert batch["input_ids"][i, batch["cls_positions"][i, k]] == CLS
        found += 1
  assert not alone
  assert several > 20


def test_the_packing_is_computed_once(numbered, monkeypatch, tmp_path):
  documents, _ = numbered
  corpus = make_corpus(tmp_path, documents)
  first = make_batches(corpus).batch_at("train", 5)
  # Rows, their lengths, members, starts.
  assert len(os.listdir(tmp_path / "rows")) == 4
  monkeypatch.setattr(bin_packing, "best_fit", None)
  again = make_batches(corpus).batch_at("train", 5)
  for name, value in first.items():
    np.testing.assert_array_equal(again[name], value)


def test_rows_cut_by_another_rule_are_repacked(numbered, monkeypatch, tmp_path):
  # Members are indices of rows, which mean other rows by another rule.
  documents, _ = numbered
  corpus = make_corpus(tmp_path, documents)
  make_batches(corpus).batch_at("train", 0)
  monkeypatch.setattr(pair_table, "VERSION", pair_table.VERSION + 1)
  make_batches(corpus).batch_at("train", 0)
  assert len(os.listdir(tmp_path / "rows")) == 8
