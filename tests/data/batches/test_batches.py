"""Batches of sentence pairs: exact against loops, and what is random, fair.

Where ids tell where they stand in the text ("numbered" corpora), id - 5 is the
token's place in the split.
"""

import collections
import concurrent.futures
import tracemalloc
import types

import numpy as np
import pytest

from helpers.splits import (
  FIRST_ID,
  SPECIAL,
  check_shards,
  make_config,
  make_corpus,
  make_data,
  random_documents,
)
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.data import hashing
from maskedlm.data.batches import batching, pair_rows, pair_table, row_source
from maskedlm.data.corpus import store
from maskedlm.data.tokenizers import tokenizer

CLS, SEP, PAD = SPECIAL.cls, SPECIAL.sep, SPECIAL.pad


def numbered_documents(*args, **kwargs):
  """Random documents in which every token has an id of its own."""
  ids = iter(range(FIRST_ID, 1 << 16))
  return [
    [[next(ids) for _ in sentence] for sentence in document]
    for document in random_documents(*args, **kwargs)
  ]


def make_batches(
  corpus, data=None, *, short_share=0.1, shard=(0, 1), **changes
):
  config = make_config(data or make_data(), **changes)
  return pair_rows.nsp_batches(config, corpus, shard, short_share=short_share)


def parts(batch, i):
  """Tokens of A and of B of a batch's row i."""
  ids, types_ = batch["input_ids"][i], batch["token_type_ids"][i]
  real = batch["segment_ids"][i] == 1
  return ids[real & (types_ == 0)][1:-1], ids[real & (types_ == 1)][:-1]


# The construction, against plain loops


class Reference:
  """One row at a time, in plain python. Only the hashes are shared."""

  def __init__(self, documents, table, length, short_share, seed):
    self.tokens = [t for d in documents for s in d for t in s]
    self.starts = [0]  # Of sentences.
    self.ends = []  # Sentence after each document.
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
    """(token where B begins, the sentence after which it may end)."""
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
      kinds = [0] * (len(a) + 2) + [1] * (len(b) + 1)
      out["nsp_labels"][i] = label
      out["input_ids"][i, : len(ids)] = ids
      out["token_type_ids"][i, : len(ids)] = kinds
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
  actual, expected = make_batches(on_disk), make_batches(by_hand)
  for step in range(30):
    batch = actual.batch_at("train", step)
    for name, value in expected.batch_at("train", step).items():
      np.testing.assert_array_equal(batch[name], value)
  # What was added to the corpus is no part of it.
  assert store.verify_corpus(on_disk.path) == []
  assert store.open_corpus(on_disk.path).fingerprint == on_disk.fingerprint


# What NSP promises


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
  """60 documents; ids tell places; some sentences are longer than a row."""
  documents = numbered_documents(6, 60, max_sentences=25, max_tokens=23)
  return documents, make_corpus(
    tmp_path_factory.mktemp("numbered"), documents, documents[40:], 3
  )


@pytest.mark.parametrize("batch_size", [1, 7, 64, 1000])
def test_an_epoch_has_each_row_once(numbered, batch_size):
  _, corpus = numbered
  data = make_data(batch_size=batch_size)
  reader = make_batches(corpus, data)
  opened = pair_table.open_pair_table(
    corpus,
    "train",
    length=13,
    short_share=0.1,
    seed=int(hashing.bits(11, "phase", 0)),
  )
  R = len(opened.table)
  assert R % 7 and R % 64 and R < 1000
  num_steps = -(-3 * R // batch_size)
  ids = [reader.row_ids("train", step) for step in range(num_steps)]
  assert ids[0].dtype == np.int64 and ids[0].shape == (batch_size,)
  epochs = np.concatenate(ids)[: 3 * R].reshape(3, R)
  for epoch in epochs:
    np.testing.assert_array_equal(np.sort(epoch), np.arange(R))
  # Orders differ: equal places are Poisson(1).
  assert np.sum(epochs[0] == epochs[1]) <= 8
  assert np.sum(epochs[1] == epochs[2]) <= 8


@pytest.mark.parametrize("split", ["train", "heldout"])
def test_shards_have_the_same_global_batch(numbered, split):
  check_shards(make_batches, numbered[1], split)


def test_a_and_b_are_contiguous_and_a_random_b_is_of_another_document(numbered):
  documents, corpus = numbered
  document = np.repeat(
    np.arange(len(documents)), [sum(map(len, d)) for d in documents]
  )
  data = make_data(batch_size=50, length=24)
  reader = make_batches(corpus, data)
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


def test_layout(numbered):
  _, corpus = numbered
  reader = make_batches(corpus, make_data(batch_size=50))
  full = 0
  for step in range(10):
    batch = reader.batch_at("train", step)
    assert sorted(batch) == [
      "example_weights",
      "input_ids",
      "nsp_labels",
      "segment_ids",
      "token_type_ids",
    ]
    assert batch["example_weights"].dtype == np.float32
    assert (batch["example_weights"] == 1).all()
    for i in range(50):
      a, b = parts(batch, i)
      used = len(a) + len(b) + 3
      ids = [CLS, *a, SEP, *b, SEP]
      assert batch["input_ids"][i].tolist() == ids + [PAD] * (13 - used)
      assert min(*a, *b) >= FIRST_ID
      assert batch["segment_ids"][i].sum() == used
      assert batch["token_type_ids"][i].sum() == len(b) + 1
      full += used == 13
  assert full > 300  # Most rows have no padding.


def test_half_of_the_labels_are_random_and_each_epoch_draws_anew(numbered):
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
    other = pair_rows._other_row(opened, np.full(E, row), np.arange(E))
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
    _, token = pair_rows._split_point(opened, record, which, np.arange(E))
    values, counts = np.unique(token, return_counts=True)
    assert values.tolist() == points
    share = 1 / len(points)
    bound = 4 * np.sqrt(E * share * (1 - share))
    assert np.abs(counts - E * share).max() < bound


def test_lengths_hardly_tell_the_label(tmp_path):
  """A true and a random B break off alike, so NSP must read the text."""
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
  # Not exactly: where a document's last row is short, a random B fills it.
  # 83% and 80% are full, with 60.3 and 58.5 tokens, 32.1 and 30.4 of them B's.
  assert abs(full[label].mean() - full[~label].mean()) < 0.05
  assert abs(used[label].mean() - used[~label].mean()) < 2.5
  assert abs(b[label].mean() - b[~label].mean()) < 2.5


# Truncation


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


def test_tokens_go_from_the_front_and_the_back_alike(tmp_path):
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


# The schedule


def test_phase_at():
  at = [batching.phase_at(step, 10, 0.3) for step in range(10)]
  assert at == [(0, s) for s in range(7)] + [(1, s) for s in range(3)]
  assert batching.phase_at(99, 10, 0.0) == (0, 99)
  assert batching.phase_at(9, 10, 0.04) == (0, 9)  # No step is left for it.
  assert batching.phase_at(0, 10, 1.0) == (1, 0)
  # 0.29 * 100 is 28.999... in binary: 29 steps all the same.
  assert batching.phase_at(71, 100, 0.29) == (1, 0)


def test_two_phases_have_shapes_and_epochs_of_their_own(numbered):
  _, corpus = numbered
  data = make_data(long_share=0.4)
  reader = make_batches(corpus, data, num_steps=10)
  short = [reader.batch_at("train", step) for step in range(6)]
  long = [reader.batch_at("train", step) for step in range(6, 10)]
  assert {b["input_ids"].shape for b in short} == {(6, 13)}
  assert {b["input_ids"].shape for b in long} == {(4, 29)}
  # What comes first in phase 2 depends on no length of phase 1.
  other = make_batches(corpus, data, num_steps=20)
  for name, value in other.batch_at("train", 12).items():
    np.testing.assert_array_equal(value, long[0][name])
  ids = np.concatenate([reader.row_ids("train", s) for s in range(6, 10)])
  assert len(set(ids.tolist())) == 16


def test_phases_of_the_same_length_differ(numbered):
  _, corpus = numbered
  data = make_data(long_share=0.5, long_length=13, long_batch_size=6)
  reader = make_batches(corpus, data, num_steps=2)
  first, second = (reader.batch_at("train", s)["input_ids"] for s in (0, 1))
  assert not np.array_equal(first, second)


def test_batches_depend_on_the_seed_and_on_nothing_else(numbered):
  _, corpus = numbered
  one, same = make_batches(corpus), make_batches(corpus)
  two = make_batches(corpus, seed=12)
  later = one.batch_at("train", 1000)
  for name, value in same.batch_at("train", 1000).items():
    np.testing.assert_array_equal(value, later[name])
  assert not np.array_equal(
    two.batch_at("train", 1000)["input_ids"], later["input_ids"]
  )


def test_batches_may_be_made_by_several_threads(numbered):
  _, corpus = numbered
  reader = make_batches(corpus, make_data(batch_size=40), eval_rows=100)
  alone = [reader.batch_at("train", step) for step in range(40)]
  with concurrent.futures.ThreadPoolExecutor(8) as pool:
    together = pool.map(lambda step: reader.batch_at("train", step), range(40))
    for batch, expected in zip(together, alone, strict=True):
      for name, value in expected.items():
        np.testing.assert_array_equal(batch[name], value)


def test_batches_leave_no_memory_behind(numbered):
  _, corpus = numbered
  reader = make_batches(corpus, make_data(batch_size=100))
  reader.batch_at("train", 0)
  tracemalloc.start()
  try:
    for step in range(200):
      reader.batch_at("train", step)
    grown, _ = tracemalloc.get_traced_memory()
  finally:
    tracemalloc.stop()
  # Bytes; the 200 batches have 3.4 million.
  assert grown < 500_000


# The held-out split


def test_heldout_has_each_row_once_and_then_rows_of_weight_0(numbered):
  _, corpus = numbered
  data = make_data(batch_size=16, long_share=0.5)
  reader = make_batches(corpus, data, eval_rows=10**6)
  opened = pair_table.open_pair_table(
    corpus, "heldout", length=13, short_share=0.1, seed=0
  )
  R = len(opened.table)
  assert R % 16 and reader.num_heldout_batches == -(-R // 16)
  steps = range(reader.num_heldout_batches)
  read = [reader.batch_at("heldout", step) for step in steps]
  weights = np.concatenate([batch["example_weights"] for batch in read])
  assert weights.dtype == np.float32
  assert weights.tolist() == [1] * R + [0] * (16 * len(steps) - R)
  ids = np.concatenate([reader.row_ids("heldout", step) for step in steps])
  assert sorted(ids[weights == 1].tolist()) == list(range(R))
  assert {batch["input_ids"].shape for batch in read} == {(16, 13)}
  with pytest.raises(IndexError):
    reader.batch_at("heldout", len(steps))


def test_eval_rows_is_a_sample_of_all_documents(numbered):
  _, corpus = numbered
  reader = make_batches(corpus, eval_rows=45)
  assert reader.num_heldout_batches == 8
  ids = [reader.row_ids("heldout", step) for step in range(8)]
  weights = [reader.batch_at("heldout", s)["example_weights"] for s in range(8)]
  assert np.concatenate(weights).sum() == 45
  opened = pair_table.open_pair_table(
    corpus, "heldout", length=13, short_share=0.1, seed=0
  )
  chosen = np.concatenate(ids)[:45]
  assert len(set(chosen.tolist())) == 45
  # Of 20 documents; the first 45 rows lie in few of them.
  assert len(np.unique(opened.table["document_row"][chosen])) >= 12
  assert make_batches(corpus, eval_rows=0).num_heldout_batches == 0


def test_heldout_is_the_same_for_every_seed_and_schedule(numbered):
  _, corpus = numbered
  one = make_batches(corpus, eval_rows=20)
  two = make_batches(
    corpus, make_data(long_share=1.0), eval_rows=20, seed=5, num_steps=9
  )
  for step in range(one.num_heldout_batches):
    for name, value in one.batch_at("heldout", step).items():
      np.testing.assert_array_equal(value, two.batch_at("heldout", step)[name])


# What is refused


@pytest.mark.parametrize(
  ("data", "options", "message"),
  [
    ({"length": 7}, {}, "data.length=7 tokens: .* at least 8"),
    ({"long_share": 0.1, "long_length": 2}, {}, "data.long_length=2"),
    ({"batch_size": 0}, {}, "data.batch_size=0"),
    (
      {"batch_size": 10},
      {"shard": (0, 4)},
      "data.batch_size=10 must be divisible by the 4 hosts"
      ".*--config.data.batch_size=8",
    ),
    (
      {"long_share": 0.1, "long_batch_size": 3},
      {"shard": (1, 2)},
      "--config.data.long_batch_size=2",
    ),
    ({"batch_size": 2}, {"shard": (0, 4)}, "--config.data.batch_size=4"),
    ({"long_share": 1.5}, {}, "data.long_share=1.5"),
    ({}, {"short_share": -0.1}, "objective.short_share=-0.1"),
    ({}, {"eval_rows": -1}, "train.eval_rows=-1"),
    ({}, {"num_steps": -1}, "train.num_steps=-1"),
  ],
)
def test_options_out_of_range_are_refused(numbered, data, options, message):
  _, corpus = numbered
  with pytest.raises(ConfigError, match=message):
    make_batches(corpus, make_data(**data), **options)


def test_options_of_a_phase_without_steps_are_not_looked_at(numbered):
  _, corpus = numbered
  make_batches(corpus, make_data(long_length=1, long_batch_size=0))


def test_a_row_of_8_tokens_is_the_shortest(numbered):
  _, corpus = numbered
  reader = make_batches(corpus, make_data(length=8))
  assert reader.batch_at("train", 0)["input_ids"].shape == (6, 8)


def test_a_phase_that_rounds_to_no_step_is_not_opened():
  lengths = []

  def open_source(corpus, name, length, seed):
    lengths.append(length)
    return row_source.RowSource(7, seed, None)

  data = make_data(long_share=0.004)
  corpus = types.SimpleNamespace(domains=(), meta={})
  for num_steps in (100, 150):  # Of the last 0.4, and 0.6, steps.
    config = make_config(data, num_steps=num_steps)
    batching.make_batches(open_source, config, corpus, (0, 1))
  assert lengths == [13, 13, 29]


def test_a_heldout_split_of_one_document_is_refused_if_it_is_read(tmp_path):
  documents = random_documents(3, 9, max_sentences=9, max_tokens=9)
  corpus = make_corpus(tmp_path, documents, documents[:1])
  make_batches(corpus, eval_rows=0)
  with pytest.raises(CorpusError, match=r"heldout split has [01] documents"):
    make_batches(corpus, eval_rows=10)
