"""Batches: epochs, hosts, the held-out sample, wrong options."""

import concurrent.futures
import tracemalloc

import numpy as np
import pytest

from helpers.splits import (
  BATCHES,
  make_batches,
  make_corpus,
  make_data,
  nsp_batches,
  random_documents,
)
from maskedlm.core.errors import CorpusError
from maskedlm.data.batches import pair_table

EVERY = pytest.mark.parametrize("name", BATCHES)


@EVERY
@pytest.mark.parametrize("batch_size", [7, 1000])
def test_an_epoch_has_each_row_once(numbered, name, batch_size):
  reader = make_batches(name, numbered[1], make_data(batch_size=batch_size))
  R = reader.rows_per_epoch
  num_steps = -(-3 * R // batch_size)
  ids = [reader.row_ids("train", step) for step in range(num_steps)]
  assert ids[0].dtype == np.int64 and ids[0].shape == (batch_size,)
  epochs = np.concatenate(ids)[: 3 * R].reshape(3, R)
  for epoch in epochs:
    np.testing.assert_array_equal(np.sort(epoch), np.arange(R))
  # Orders differ: equal places are Poisson(1).
  assert np.sum(epochs[0] == epochs[1]) <= 8
  assert np.sum(epochs[1] == epochs[2]) <= 8


@EVERY
@pytest.mark.parametrize("split", ["train", "heldout"])
def test_shards_have_the_same_global_batch(numbered, name, split):
  """The hosts' parts of each batch make up a single host's batch."""
  data = make_data(batch_size=12)
  whole = make_batches(name, numbered[1], data, eval_rows=40)
  for count in (1, 2, 4):
    hosts = [
      make_batches(name, numbered[1], data, eval_rows=40, shard=(index, count))
      for index in range(count)
    ]
    for step in range(min(4, whole.num_heldout_batches)):
      slices = [host.batch_at(split, step) for host in hosts]
      for key, value in whole.batch_at(split, step).items():
        np.testing.assert_array_equal(
          np.concatenate([s[key] for s in slices]), value
        )
      for host in hosts:
        ids = host.row_ids(split, step)
        np.testing.assert_array_equal(ids, whole.row_ids(split, step))


def test_batches_may_be_made_by_several_threads(numbered):
  _, corpus = numbered
  reader = nsp_batches(corpus, make_data(batch_size=40), eval_rows=100)
  alone = [reader.batch_at("train", step) for step in range(40)]
  with concurrent.futures.ThreadPoolExecutor(8) as pool:
    together = pool.map(lambda step: reader.batch_at("train", step), range(40))
    for batch, expected in zip(together, alone, strict=True):
      for name, value in expected.items():
        np.testing.assert_array_equal(batch[name], value)


def test_batches_leave_no_memory_behind(numbered):
  _, corpus = numbered
  reader = nsp_batches(corpus, make_data(batch_size=100))
  reader.batch_at("train", 0)
  tracemalloc.start()
  try:
    for step in range(60):
      reader.batch_at("train", step)
    grown, _ = tracemalloc.get_traced_memory()
  finally:
    tracemalloc.stop()
  # Bytes; the 60 batches have 1 million.
  assert grown < 150_000


@EVERY
def test_heldout_has_each_row_once_for_every_seed(numbered, name):
  """Then rows of weight 0."""
  data = make_data(batch_size=16)
  reader, other = (
    make_batches(name, numbered[1], data, eval_rows=10**6, seed=seed)
    for seed in (11, 5)
  )
  weights, ids = [], []
  for step in range(reader.num_heldout_batches):
    batch, same = (x.batch_at("heldout", step) for x in (reader, other))
    for key, value in batch.items():
      np.testing.assert_array_equal(value, same[key])
    assert batch["input_ids"].shape == (16, 13)
    weights += batch["example_weights"].tolist()
    ids += reader.row_ids("heldout", step).tolist()
  R = int(sum(weights))
  assert weights == [1] * R + [0] * (len(weights) - R)
  assert len(weights) - R < 16 and sorted(ids[:R]) == list(range(R))
  with pytest.raises(IndexError):
    reader.batch_at("heldout", reader.num_heldout_batches)


def test_eval_rows_is_a_sample_of_all_documents(numbered):
  _, corpus = numbered
  reader = nsp_batches(corpus, eval_rows=45)
  assert reader.num_heldout_batches == 8
  ids = [reader.row_ids("heldout", step) for step in range(8)]
  weights = [reader.batch_at("heldout", s)["example_weights"] for s in range(8)]
  assert np.concatenate(weights).sum() == 45
  opened = pair_table.open_pair_table(
    corpus, "heldout", length=13, short_share=0.1, seed=0
  )
  chosen = np.concatenate(ids)[:45]
  assert len(set(chosen.tolist())) == 45
  # There are 20 documents; the first 45 rows lie in few of them.
  assert len(np.unique(opened.table["document_row"][chosen])) >= 12
  assert nsp_batches(corpus, eval_rows=0).num_heldout_batches == 0


def test_a_heldout_split_of_one_document_is_rejected_if_it_is_read(tmp_path):
  documents = random_documents(3, 9, max_sentences=9, max_tokens=9)
  corpus = make_corpus(tmp_path, documents, documents[:1])
  nsp_batches(corpus, eval_rows=0)
  with pytest.raises(CorpusError, match=r"heldout split has [01] document"):
    nsp_batches(corpus, eval_rows=10)
