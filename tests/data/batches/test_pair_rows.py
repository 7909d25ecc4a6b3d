"""Sentence pairs: equal to plain loops; random choices are fair.

In numbered corpora, id - FIRST_ID is the token's place in the split.
"""

import numpy as np
import pytest

from helpers.splits import SPECIAL, make_corpus, random_documents
from maskedlm.data import hashing
from maskedlm.data.batches import pair_rows, pair_table

CLS, SEP = SPECIAL.cls, SPECIAL.sep


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
  [(9, 6, 1), (3, 40, 3), (1, 90, 2), (40, 2, 5)],
)
def test_every_field_equals_plain_loops(
  tmp_path, max_sentences, max_tokens, num_shards
):
  documents = random_documents(5, 19, max_sentences, max_tokens)
  corpus = make_corpus(tmp_path, documents, num_shards=num_shards)
  options = {"length": 13, "short_share": 0.3, "seed": 2}
  opened = pair_table.open_pair_table(corpus, "train", **options)
  reference = Reference(documents, opened.table, **options)
  for epoch in range(2):
    row = np.arange(len(opened.table))
    epochs = np.full(len(row), epoch)
    actual = pair_rows.next_sentence_pairs(opened, row, epochs, special=SPECIAL)
    expected = reference.batch(row, epochs)
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
      assert actual[name].dtype == np.int32
      np.testing.assert_array_equal(actual[name], value, err_msg=name)


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
