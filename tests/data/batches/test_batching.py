"""Batches: epochs, hosts, the held-out sample, wrong options."""

import concurrent.futures
import tracemalloc

import numpy as np
import pytest

from helpers.splits import (
  check_shards,
  make_corpus,
  make_data,
  nsp_batches,
  random_documents,
)
from maskedlm.core.errors import CorpusError
from maskedlm.data import hashing
from maskedlm.data.batches import pair_table


@pytest.mark.parametrize("batch_size", [1, 7, 64, 1000])
def test_an_epoch_has_each_row_once(numbered, batch_size):
  _, corpus = numbered
  data = make_data(batch_size=batch_size)
  reader = nsp_batches(corpus, data)
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
  check_shards(nsp_batches, numbered[1], split)


def test_batches_depend_on_the_seed_alone(numbered):
  _, corpus = numbered
  one, same = nsp_batches(corpus), nsp_batches(corpus)
  two = nsp_batches(corpus, seed=12)
  later = one.batch_at("train", 1000)
  for name, value in same.batch_at("train", 1000).items():
    np.testing.assert_array_equal(value, later[name])
  assert not np.array_equal(
    two.batch_at("train", 1000)["input_ids"], later["input_ids"]
  )


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
    for step in range(200):
      reader.batch_at("train", step)
    grown, _ = tracemalloc.get_traced_memory()
  finally:
    tracemalloc.stop()
  # Bytes; the 200 batches have 3.4 million.
  assert grown < 500_000


def test_heldout_has_each_row_once_and_then_rows_of_weight_0(numbered):
  _, corpus = numbered
  data = make_data(batch_size=16)
  reader = nsp_batches(corpus, data, eval_rows=10**6)
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


def test_heldout_is_the_same_for_every_seed(numbered):
  _, corpus = numbered
  one = nsp_batches(corpus, eval_rows=20)
  two = nsp_batches(corpus, eval_rows=20, seed=5)
  for step in range(one.num_heldout_batches):
    for name, value in one.batch_at("heldout", step).items():
      np.testing.assert_array_equal(value, two.batch_at("heldout", step)[name])


def test_a_row_of_8_tokens_is_the_shortest(numbered):
  _, corpus = numbered
  reader = nsp_batches(corpus, make_data(length=8))
  assert reader.batch_at("train", 0)["input_ids"].shape == (6, 8)


def test_a_heldout_split_of_one_document_is_rejected_if_it_is_read(tmp_path):
  documents = random_documents(3, 9, max_sentences=9, max_tokens=9)
  corpus = make_corpus(tmp_path, documents, documents[:1])
  nsp_batches(corpus, eval_rows=0)
  with pytest.raises(CorpusError, match=r"heldout split has [01] document"):
    nsp_batches(corpus, eval_rows=10)
