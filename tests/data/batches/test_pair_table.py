"""Tables of pairs: a partition of the split's sentences, built once."""

import os

import numpy as np
import pytest

from helpers.splits import make_corpus, make_split, random_documents
from maskedlm.core.errors import CorpusError
from maskedlm.data.batches import pair_table, row_tables

OPTIONS = {"length": 13, "short_share": 0.3, "seed": 7}


def reference(documents, **options):
  """Returns (first sentence, sentences, tokens, document) of rows, by loops."""
  found, sentence = [], 0
  for number, document in enumerate(documents):
    chunks, chunk = [], []
    for offset, tokens in enumerate(document):
      chunk.append((sentence + offset, len(tokens)))
      target = pair_table.target_lengths(np.array([chunk[0][0]]), **options)[0]
      if sum(n for _, n in chunk) >= target:
        chunks.append(chunk)
        chunk = []
    if chunks and sum(n for _, n in chunk) < 2:
      chunks[-1] += chunk
    elif sum(n for _, n in chunk) >= 2:
      chunks.append(chunk)
    for chunk in chunks:
      size = sum(n for _, n in chunk)
      found.append((chunk[0][0], len(chunk), size, number))
    sentence += len(document)
  return found


def build(split, **options):
  return np.concatenate(list(pair_table.cut_rows(split, **options)))


def spans(table):
  names = ["sentence", "num_sentences", "num_tokens"]
  return [tuple(int(record[n]) for n in names) for record in table]


def test_rows_end_at_the_target_or_the_documents_end():
  sizes = [[4, 3, 5, 2, 8, 1], [1], [25], [9, 1, 10, 1], [1, 1]]
  documents = [[[5] * n for n in document] for document in sizes]
  table = build(make_split(documents), length=13, short_share=0, seed=0)
  # The target is 10. 4+3+5 | 2+8, and the 1 left over joins it. The document
  # of one token has no row. 25 | 9+1 | 10+1 (again a 1 that joins) | 1+1.
  assert spans(table) == [
    (0, 3, 12),
    (3, 3, 11),
    (7, 1, 25),
    (8, 2, 10),
    (10, 2, 11),
    (12, 2, 2),
  ]
  assert table["token"].tolist() == [0, 12, 24, 49, 59, 70]
  assert table["document_end"].tolist() == [23, 23, 49, 70, 70, 72]
  assert table["document_row"].tolist() == [0, 0, 2, 3, 3, 5]
  assert table["num_document_rows"].tolist() == [2, 2, 1, 2, 2, 1]


@pytest.mark.parametrize("num_shards", [1, 4])
@pytest.mark.parametrize("block", [17, 1 << 18])
def test_rows_equal_a_plain_loop(monkeypatch, num_shards, block):
  monkeypatch.setattr(pair_table, "BLOCK", block)
  documents = random_documents(1, 41, max_sentences=9, max_tokens=11)
  table = build(make_split(documents, num_shards), **OPTIONS)
  expected = reference(documents, **OPTIONS)
  assert spans(table) == [row[:3] for row in expected]
  number = np.array([row[3] for row in expected])
  first = [int(np.argmax(number == n)) for n in number]
  assert table["document_row"].tolist() == first
  count = [int(np.sum(number == n)) for n in number]
  assert table["num_document_rows"].tolist() == count
  tokens = np.cumsum([sum(map(len, d)) for d in documents])
  assert table["document_end"].tolist() == tokens[number].tolist()


def test_a_tenth_of_the_rows_is_short():
  # With sentences of one token a row has just its target's tokens.
  num_tokens, length = 60_000, 33
  split = make_split([[[5]] * num_tokens])
  table = build(split, length=length, short_share=0.1, seed=3)
  sizes = table["num_tokens"][:-1]
  n, longest = len(sizes), length - 3
  # A short target is uniform in [2, 30]; one of the 29 is the full length.
  share = 0.1 * 28 / 29
  bound = 4 * np.sqrt(share * (1 - share) / n)
  assert abs(np.mean(sizes < longest) - share) < bound
  short = sizes[sizes < longest]
  assert short.min() == 2 and short.max() == longest - 1
  counts = np.bincount(short - 2, minlength=28)
  expected = len(short) / 28
  chi2 = np.sum((counts - expected) ** 2 / expected)
  assert chi2 < 27 + 4 * np.sqrt(2 * 27)
  none = build(split, length=length, short_share=0, seed=3)
  assert set(none["num_tokens"][:-1].tolist()) == {longest}
  every = build(split, length=length, short_share=1, seed=3)
  assert abs(every["num_tokens"].mean() - 16) < 0.5


@pytest.fixture
def corpus(tmp_path):
  documents = random_documents(4, 20, max_sentences=9, max_tokens=11)
  return make_corpus(tmp_path, documents, documents[:5])


def test_each_option_has_its_own_table(corpus):
  pair_table.open_pair_table(corpus, "train", **OPTIONS)
  for change in ({"length": 14}, {"short_share": 0.2}, {"seed": 8}):
    pair_table.open_pair_table(corpus, "train", **{**OPTIONS, **change})
  pair_table.open_pair_table(corpus, "heldout", **OPTIONS)
  corpus.fingerprint = "another"
  pair_table.open_pair_table(corpus, "train", **OPTIONS)
  assert len(os.listdir(os.path.join(corpus.path, "rows"))) == 6


@pytest.mark.parametrize(
  ("documents", "count"),
  [
    ([], 0),
    ([[[5, 6, 7]] * 9], 1),
    ([[[5]], [[5, 6, 7]] * 9, [[6]]], 1),
    ([[[5]], [[6]]], 0),
  ],
)
def test_fewer_than_two_documents_are_rejected(tmp_path, documents, count):
  corpus = make_corpus(tmp_path, documents, documents)
  with pytest.raises(CorpusError, match=f"train split has {count} document"):
    pair_table.open_pair_table(corpus, "train", **OPTIONS)
  with pytest.raises(CorpusError, match=r"raise corpus\.heldout_share"):
    pair_table.open_pair_table(corpus, "heldout", **OPTIONS)


def test_one_document_is_enough_without_a_random_b(tmp_path):
  # Also checked for a table that was built before.
  options = {"length": 9, "short_share": 0.0, "seed": 1}
  made = make_corpus(tmp_path, [[[5, 6, 7], [8, 9]], [[7]]])
  opened = pair_table.open_pair_table(made, "train", documents=1, **options)
  assert opened.table["num_tokens"].tolist() == [5]
  with pytest.raises(CorpusError, match="train split has 1 document of at"):
    pair_table.open_pair_table(made, "train", **options)
  none = make_corpus(tmp_path / "none", [[[5]], [[7]]])
  with pytest.raises(CorpusError, match=r"0 documents.*a token each: give it"):
    pair_table.open_pair_table(none, "train", documents=1, **options)


def test_places_equal_searchsorted():
  rng = np.random.default_rng(5)
  for size in (0, 1, 2, 7, 300):
    edges = np.unique(rng.integers(0, 400, 23))
    values = np.sort(rng.integers(0, 400, size))  # Some outside the edges.
    expected = np.searchsorted(edges, values, side="right")
    assert np.array_equal(row_tables.places(edges, values), expected)
