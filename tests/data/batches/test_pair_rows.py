"""Sentence pairs: equal to plain loops; random choices are fair.

In numbered corpora, id - FIRST_ID is the token's place in the split.
"""

import collections

import numpy as np
import pytest

from helpers.splits import (
  FIRST_ID,
  SPECIAL,
  make_corpus,
  make_data,
  nsp_batches,
  random_documents,
)
from maskedlm.data import hashing
from maskedlm.data.batches import (
  pair_rows,
  pair_table,
)
from maskedlm.data.corpus import store
from maskedlm.data.tokenizers import tokenizer

CLS, SEP, PAD = SPECIAL.cls, SPECIAL.sep, SPECIAL.pad


def parts(batch, i):
  """Returns the tokens of A and of B in row i of a batch."""
  ids, types_ = batch["input_ids"][i], batch["token_type_ids"][i]
  real = batch["segment_ids"][i] == 1
  return ids[real & (types_ == 0)][1:-1], ids[real & (types_ == 1)][:-1]


class Reference:
  """Rows one at a time in plain Python; only the hashes are shared."""

  def __init__(self, documents, table, length, short_share, seed):
    self.tokens = [t for d in documents for s in d for t in s]
    self.starts = [0]  # First token of each sentence.
    self.ends = []  # The sentence after each document.
    for document in documents:
      for sentence in document:
        self.starts.append(self.starts[-1] + len(sentence))
      self.ends.append(len(self.starts) - 1)
    self.rows = [
      range(r["sentence"], r["sentence"] + r["num_sentences"]) for r in table
    ]
    self.length, self.short_share, self.seed = length, short_share, seed

  def hash(self, *words):
    return int(hashing.bits(self.seed, *words))

  def document(self, row):
    return sum(end <= self.rows[row][0] for end in self.ends)

  def split(self, row, epoch):
    """Returns the token and the sentence at which B begins."""
    sentences, draw = self.rows[row], self.hash("split", epoch, row)
    if len(sentences) > 1:
      sentence = sentences[1 + draw % (len(sentences) - 1)]
      return self.starts[sentence], sentence
    begin, end = self.starts[sentences[0]], self.starts[sentences[0] + 1]
    return begin + 1 + draw % (end - begin - 1), sentences[0]

  def pair(self, row, epoch):
    sentences = self.rows[row]
    split, _ = self.split(row, epoch)
    a = self.tokens[self.starts[sentences[0]] : split]
    label = self.hash("label", epoch, row) % 2
    if label == 0:
      b = self.tokens[split : self.starts[sentences[-1] + 1]]
    else:
      others = [
        other
        for other in range(len(self.rows))
        if self.document(other) != self.document(row)
      ]
      other = others[self.hash("other", epoch, row) % len(others)]
      begin, sentence = self.split(other, epoch)
      short = hashing.uniform(self.seed, "short", sentences[0])
      target = self.length - 3
      if short < self.short_share:
        draw = self.hash("target", sentences[0])
        target = 2 + draw % (self.length - 4)
      end = sentence + 1
      while (
        self.starts[end] - begin < target - len(a)
        and end < self.ends[self.document(other)]
      ):
        end += 1
      b = self.tokens[begin : self.starts[end]]
    return label, *self.truncate(a, b, row, epoch)

  def truncate(self, a, b, row, epoch):
    pair, gone = (list(a), list(b)), [0, 0]
    while len(pair[0]) + len(pair[1]) > self.length - 3:
      side = 0 if len(pair[0]) > len(pair[1]) else 1
      word = self.hash("front", epoch, row, side, gone[side] // 64)
      front = word >> (63 - gone[side] % 64) & 1
      del pair[side][0 if front else -1]
      gone[side] += 1
    return pair

  def batch(self, row_ids, epochs):
    out = {
      name: np.zeros((len(row_ids), self.length), np.int32)
      for name in ("input_ids", "token_type_ids", "segment_ids")
    }
    out["nsp_labels"] = np.zeros(len(row_ids), np.int32)
    for i, (row, epoch) in enumerate(zip(row_ids, epochs, strict=True)):
      label, a, b = self.pair(int(row), int(epoch))
      ids = [CLS, *a, SEP, *b, SEP]
      types_ = [0] * (len(a) + 2) + [1] * (len(b) + 1)
      out["nsp_labels"][i] = label
      out["input_ids"][i, : len(ids)] = ids
      out["token_type_ids"][i, : len(ids)] = types_
      out["segment_ids"][i, : len(ids)] = 1
    return out


@pytest.mark.parametrize(
  ("max_sentences", "max_tokens", "num_shards"),
  [(9, 6, 1), (3, 40, 3), (1, 250, 2), (40, 2, 5)],
)
def test_every_field_equals_plain_loops(
  tmp_path, max_sentences, max_tokens, num_shards
):
  documents = random_documents(5, 19, max_sentences, max_tokens)
  corpus = make_corpus(tmp_path, documents, num_shards=num_shards)
  options = {"length": 13, "short_share": 0.3, "seed": 2}
  opened = pair_table.open_pair_table(corpus, "train", **options)
  reference = Reference(documents, opened.table, **options)
  for epoch in range(4):
    row = np.arange(len(opened.table))
    epochs = np.full(len(row), epoch)
    actual = pair_rows.next_sentence_pairs(opened, row, epochs, special=SPECIAL)
    expected = reference.batch(row, epochs)
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
      assert actual[name].dtype == np.int32
      np.testing.assert_array_equal(actual[name], value, err_msg=name)


def test_a_row_by_hand(tmp_path):
  # One row a document: [10 11 12 | 13 14 15 16] and [20 21 22 23 24 25].
  documents = [[[10, 11, 12], [13, 14, 15, 16]], [[20, 21, 22, 23, 24, 25]]]
  corpus = make_corpus(tmp_path, documents)
  opened = pair_table.open_pair_table(
    corpus, "train", length=12, short_share=0, seed=0
  )
  epoch = np.arange(60)
  row = np.zeros(60, int)
  batch = pair_rows.next_sentence_pairs(opened, row, epoch, special=SPECIAL)
  for i in range(60):
    ids, label = batch["input_ids"][i].tolist(), batch["nsp_labels"][i]
    if label == 0:
      assert ids == [CLS, 10, 11, 12, SEP, 13, 14, 15, 16, SEP, PAD, PAD]
      assert batch["token_type_ids"][i].tolist() == [0] * 5 + [1] * 5 + [0] * 2
      assert batch["segment_ids"][i].tolist() == [1] * 10 + [0] * 2
    else:
      begin = ids[5]
      assert 21 <= begin <= 25
      tail = [*range(begin, 26), SEP]
      assert ids == [CLS, 10, 11, 12, SEP, *tail, *[PAD] * (7 - len(tail))]
  assert set(batch["nsp_labels"].tolist()) == {0, 1}


def test_a_corpus_on_disk_gives_the_same_batches(tmp_path):
  made = tokenizer.train_tokenizer(
    ["a boy, a girl, a dog and a cat met on a hill at noon"] * 3,
    kind="wordpiece",
    vocab_size=50,
    lowercase=True,
  )
  documents = [
    [[5 + token % 30 for token in sentence] for sentence in document]
    for document in random_documents(7, 37, max_sentences=9, max_tokens=11)
  ]
  on_disk = store.write_corpus(
    tmp_path / "corpus",
    [("train", [np.array(s) for s in d]) for d in documents],
    tokenizer=made,
    shard_tokens=300,
    options={},
    report=collections.Counter(),
  )
  assert len(on_disk.train.tokens.arrays) > 3
  by_hand = make_corpus(tmp_path, documents)
  by_hand.tokenizer.special = made.special
  actual, expected = nsp_batches(on_disk), nsp_batches(by_hand)
  for step in range(30):
    batch = actual.batch_at("train", step)
    for name, value in expected.batch_at("train", step).items():
      np.testing.assert_array_equal(batch[name], value)
  # The row tables are not a part of the corpus.
  assert store.verify_corpus(on_disk.path) == []
  assert store.open_corpus(on_disk.path).fingerprint == on_disk.fingerprint


def test_a_and_b_are_contiguous_and_a_random_b_is_of_another_document(numbered):
  documents, corpus = numbered
  document = np.repeat(
    np.arange(len(documents)), [sum(map(len, d)) for d in documents]
  )
  data = make_data(batch_size=50, length=24)
  reader = nsp_batches(corpus, data)
  whole = 0
  for step in range(30):
    batch = reader.batch_at("train", step)
    for i in range(50):
      a, b = (ids - FIRST_ID for ids in parts(batch, i))
      assert len(a) and len(b)
      assert (np.diff(a) == 1).all() and (np.diff(b) == 1).all()
      in_a, in_b = set(document[a]), set(document[b])
      assert len(in_a) == len(in_b) == 1
      if batch["nsp_labels"][i]:
        assert in_a != in_b
      else:
        assert in_a == in_b and b[0] > a[-1]
        if len(a) + len(b) < 21:  # Nothing was truncated.
          assert b[0] == a[-1] + 1
          whole += 1
  assert whole > 100


def test_half_of_the_labels_are_random_and_redrawn_in_each_epoch(numbered):
  _, corpus = numbered
  opened = pair_table.open_pair_table(
    corpus, "train", length=13, short_share=0.1, seed=1
  )
  R, E = len(opened.table), 40
  row, epoch = np.tile(np.arange(R), E), np.repeat(np.arange(E), R)
  batch = pair_rows.next_sentence_pairs(opened, row, epoch, special=SPECIAL)
  labels = batch["nsp_labels"].reshape(E, R)
  n = labels.size
  assert n > 20_000
  assert abs(labels.mean() - 0.5) < 4 * 0.5 / np.sqrt(n)
  # A row's label doesn't depend on the row (of one sentence or many), nor on
  # its label in the epoch before.
  single = opened.table["num_sentences"] == 1
  k = single.sum() * E
  assert abs(labels[:, single].mean() - 0.5) < 4 * 0.5 / np.sqrt(k)
  again = np.mean(labels[1:] == labels[:-1])
  assert abs(again - 0.5) < 4 * 0.5 / np.sqrt(n - R)


def test_a_random_b_is_uniform_over_the_rows_of_other_documents(tmp_path):
  documents = random_documents(8, 7, max_sentences=9, max_tokens=9)
  corpus = make_corpus(tmp_path, documents)
  opened = pair_table.open_pair_table(
    corpus, "train", length=13, short_share=0.1, seed=1
  )
  table = opened.table
  E = 3000
  for row in range(len(table)):
    other = pair_rows.other_row(opened, np.full(E, row), np.arange(E))
    counts = np.bincount(other, minlength=len(table))
    own = table["document_row"] == table["document_row"][row]
    assert (counts[own] == 0).all()
    expected = E / np.sum(~own)
    chi2 = np.sum((counts[~own] - expected) ** 2 / expected)
    freedom = np.sum(~own) - 1
    assert chi2 < freedom + 4.5 * np.sqrt(2 * freedom)


def test_split_points_are_uniform(tmp_path):
  documents = [[[9] * n for n in (2, 3, 1, 2)], [[9] * 7]]
  corpus = make_corpus(tmp_path, documents)
  opened = pair_table.open_pair_table(
    corpus, "train", length=13, short_share=0, seed=1
  )
  assert opened.table["num_sentences"].tolist() == [4, 1]
  E = 6000
  for row, points in ((0, [2, 5, 6]), (1, [9, 10, 11, 12, 13, 14])):
    which = np.full(E, row)
    record = opened.table[which]
    _, token = pair_rows.split_point(opened, record, which, np.arange(E))
    values, counts = np.unique(token, return_counts=True)
    assert values.tolist() == points
    share = 1 / len(points)
    bound = 4 * np.sqrt(E * share * (1 - share))
    assert np.abs(counts - E * share).max() < bound


def test_lengths_hardly_tell_the_label(tmp_path):
  """True and random Bs end alike, so lengths don't reveal the label."""
  documents = random_documents(9, 300, max_sentences=60, max_tokens=30)
  corpus = make_corpus(tmp_path, documents)
  opened = pair_table.open_pair_table(
    corpus, "train", length=64, short_share=0.1, seed=1
  )
  R = len(opened.table)
  row, epoch = np.tile(np.arange(R), 8), np.repeat(np.arange(8), R)
  batch = pair_rows.next_sentence_pairs(opened, row, epoch, special=SPECIAL)
  label = batch["nsp_labels"] == 1
  used = batch["segment_ids"].sum(1)
  b = batch["token_type_ids"].sum(1)
  full = used == 64
  # Not exactly: if a document's last row is short, a random B fills it.
  # 83% and 80% are full, with 60.3 and 58.5 tokens, 32.1 and 30.4 of them B's.
  assert abs(full[label].mean() - full[~label].mean()) < 0.05
  assert abs(used[label].mean() - used[~label].mean()) < 2.5
  assert abs(b[label].mean() - b[~label].mean()) < 2.5


def test_truncated_lengths_are_those_of_the_loop():
  for maximum in range(2, 14):
    for a in range(1, 31):
      for b in range(1, 31):
        left = [a, b]
        while sum(left) > maximum:
          left[0 if left[0] > left[1] else 1] -= 1
        kept = pair_rows.truncated_lengths(
          np.array(a), np.array(b), maximum=maximum
        )
        assert kept.tolist() == left


def test_tokens_are_removed_from_both_ends_equally(tmp_path):
  ids = iter(range(FIRST_ID, 1 << 16))
  documents = [[[next(ids) for _ in range(15)] for _ in "AB"] for _ in "CD"]
  corpus = make_corpus(tmp_path, documents)
  opened = pair_table.open_pair_table(
    corpus, "train", length=23, short_share=0, seed=1
  )
  assert opened.table["num_sentences"].tolist() == [2, 2]
  n = 4000
  row = np.zeros(n, int)
  batch = pair_rows.next_sentence_pairs(
    opened, row, np.arange(n), special=SPECIAL
  )
  # A and B: 15 tokens each, 10 of which stay.
  assert (batch["token_type_ids"].sum(1) == 11).all()
  a_front = batch["input_ids"][:, 1] - FIRST_ID
  b_front = (batch["input_ids"][:, 12] - FIRST_ID) % 15
  for front in (a_front, b_front):
    counts = np.bincount(front, minlength=6)
    expected = n * np.array([1, 5, 10, 10, 5, 1]) / 32
    chi2 = np.sum((counts - expected) ** 2 / expected)
    assert chi2 < 5 + 4 * np.sqrt(2 * 5)
  # Binomial(5, 1/2) each, and independent: sigma of a correlation is n^-1/2.
  assert abs(np.corrcoef(a_front, b_front)[0, 1]) < 4 / np.sqrt(n)
