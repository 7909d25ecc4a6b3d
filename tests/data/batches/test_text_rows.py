"""Rows of running text: equal to plain loops; nothing is lost.

In numbered corpora, id - FIRST_ID is the token's place in the split.
"""

import numpy as np
import pytest

from helpers.splits import (
  BATCHES,
  FIRST_ID,
  SPECIAL,
  make_batches,
  make_corpus,
  make_data,
  random_documents,
)
from maskedlm.core.errors import CorpusError
from maskedlm.data import hashing
from maskedlm.data.batches import text_rows

CLS, SEP, PAD = SPECIAL.cls, SPECIAL.sep, SPECIAL.pad


def single(corpus, data=None, **changes):
  return make_batches("document_rows", corpus, data, **changes)


def sentences(corpus, data=None, **changes):
  return make_batches("whole_sentences", corpus, data, **changes)


def cut(documents, length):
  """Returns the tokens of each row, by plain loops."""
  rows = []
  for document in documents:
    row = []
    for sentence in document:
      for at in range(0, len(sentence), length - 2):
        piece = sentence[at : at + length - 2]
        if len(row) + len(piece) > length - 2:
          rows.append(row)
          row = []
        row = [*row, *piece]
    rows.append(row)
  return rows


@pytest.mark.parametrize("block", [1, 17])
@pytest.mark.parametrize("length", [8, 13, 60])
def test_document_rows_equal_a_plain_loop(tmp_path, monkeypatch, block, length):
  monkeypatch.setattr(text_rows, "BLOCK", block)
  documents = random_documents(1, 41, max_sentences=9, max_tokens=30)
  corpus = make_corpus(tmp_path, documents, num_shards=4)
  expected = cut(documents, length)
  reader = single(corpus, make_data(length=length, batch_size=len(expected)))
  batch, ids = reader.batch_at("train", 0), reader.row_ids("train", 0)
  assert sorted(ids.tolist()) == list(range(len(expected)))
  assert sorted(batch) == [
    "example_weights",
    "input_ids",
    "segment_ids",
    "token_type_ids",
  ]
  for i, row in enumerate(ids):
    used = len(expected[row]) + 2
    padding = [PAD] * (length - used)
    assert batch["input_ids"][i].tolist() == [
      CLS,
      *expected[row],
      SEP,
      *padding,
    ]
    assert batch["segment_ids"][i].tolist() == [1] * used + [0] * len(padding)
  assert not batch["token_type_ids"].any()
  assert {v.dtype for v in batch.values()} == {
    np.dtype("int32"),
    np.dtype("float32"),
  }


class Stream:
  """Full rows one at a time, in plain Python."""

  def __init__(self, documents, length, seed):
    self.places = []  # (id, document), including [SEP]s.
    for number, document in enumerate(documents):
      tokens = [t for sentence in document for t in sentence]
      self.places += [(t, number) for t in [*tokens, SEP]]
    self.length, self.seed = length, seed

  def row(self, row, epoch):
    size, capacity = len(self.places), self.length - 2
    word = int(hashing.bits(self.seed, "cut", epoch))
    begin = word % min(size, capacity) + row * capacity
    num = min(capacity, size - row * capacity)
    row = [self.places[(begin + i) % size] for i in range(num)]
    segment, segments, positions = 1, [1], [0]
    for i in range(num):
      if i and row[i - 1][0] == SEP:  # The previous document has ended.
        segment += 1
        positions.append(0)
      else:
        positions.append(positions[-1] + 1)
      segments.append(segment)
    ids = [CLS, *(t for t, _ in row), SEP]
    padding = [0] * (self.length - len(ids))
    return {
      "input_ids": [*ids, *padding],
      "segment_ids": [*segments, segment, *padding],
      "positions": [*positions, positions[-1] + 1, *padding],
    }


@pytest.mark.parametrize(
  ("num_documents", "max_sentences", "max_tokens", "num_shards"),
  [(57, 9, 30, 3), (1, 9, 30, 1), (2, 1, 1, 1), (40, 3, 1, 5)],
)
@pytest.mark.parametrize("length", [8, 29, 400])
def test_full_rows_equal_plain_loops(
  tmp_path, num_documents, max_sentences, max_tokens, num_shards, length
):
  documents = random_documents(3, num_documents, max_sentences, max_tokens)
  corpus = make_corpus(tmp_path, documents, num_shards=num_shards)
  seed = int(hashing.bits(11, "phase", 0))
  stream = Stream(documents, length, seed)
  R = -(-len(stream.places) // (length - 2))
  data = make_data(length=length, batch_size=7)
  plain = make_batches("full_sentences", corpus, data)
  apart = make_batches("isolated", corpus, data)
  for step in range(min(3 * R // 7 + 1, 40)):
    batch, ids = apart.batch_at("train", step), apart.row_ids("train", step)
    for i, row in enumerate(ids.tolist()):
      expected = stream.row(row, (7 * step + i) // R)
      real = batch["segment_ids"][i] > 0
      for name in ("input_ids", "segment_ids"):
        assert batch[name][i].tolist() == expected[name]
      np.testing.assert_array_equal(
        batch["positions"][i][real], np.array(expected["positions"])[real]
      )
    whole = plain.batch_at("train", step)
    np.testing.assert_array_equal(whole["input_ids"], batch["input_ids"])
    np.testing.assert_array_equal(
      whole["segment_ids"], batch["segment_ids"] > 0
    )
    assert "positions" not in whole


@pytest.mark.parametrize("block", [1, 17])
@pytest.mark.parametrize("length", [8, 13, 60])
def test_rows_of_whole_sentences_equal_a_plain_loop(
  tmp_path, monkeypatch, block, length
):
  monkeypatch.setattr(text_rows, "BLOCK", block)
  documents = random_documents(1, 41, max_sentences=9, max_tokens=30)
  corpus = make_corpus(tmp_path, documents, num_shards=3)
  stream = [
    [*sentence, *([SEP] if sentence is document[-1] else [])]
    for document in documents
    for sentence in document
  ]
  expected = cut([stream], length)
  table = text_rows.open_sentence_table(corpus, "train", length=length)
  assert table["num_tokens"].tolist() == [len(row) for row in expected]
  reader = sentences(corpus, make_data(length=length, batch_size=len(expected)))
  batch, ids = reader.batch_at("train", 0), reader.row_ids("train", 0)
  for i, row in enumerate(ids):
    padding = [PAD] * (length - 2 - len(expected[row]))
    assert batch["input_ids"][i].tolist() == [
      *(CLS, *expected[row], SEP),
      *padding,
    ]


TEXT_ROWS = text_rows.__name__
RUNNING = pytest.mark.parametrize(
  "name",
  [x for x, (make, _) in BATCHES.items() if make.__module__ == TEXT_ROWS],
)


@RUNNING
def test_an_epoch_has_each_token_once(numbered, name):
  documents, corpus = numbered
  num_tokens = sum(len(s) for d in documents for s in d)
  reader = make_batches(name, corpus, make_data(length=20))
  R = reader.rows_per_epoch
  assert R % 6
  tokens = [[], [], []]
  for step in range(-(-3 * R // 6)):
    batch = reader.batch_at("train", step)
    for i in range(6):
      if (epoch := (6 * step + i) // R) < 3:
        row = batch["input_ids"][i]
        tokens[epoch] += (row[row >= FIRST_ID] - FIRST_ID).tolist()
  for epoch in tokens:
    assert sorted(epoch) == list(range(num_tokens))


@RUNNING
def test_a_split_without_text_is_rejected_if_it_is_read(tmp_path, name):
  documents = random_documents(3, 9, max_sentences=9, max_tokens=9)
  corpus = make_corpus(tmp_path, documents)
  make_batches(name, corpus)
  with pytest.raises(CorpusError, match=r"heldout split has no text.*raise"):
    make_batches(name, corpus, eval_rows=10)
  with pytest.raises(CorpusError, match="train split has no text"):
    make_batches(name, make_corpus(tmp_path, []))
