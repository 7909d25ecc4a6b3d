"""Batches of rows of different lengths: each once, packed."""

import jax
import numpy as np
import pytest

from maskedlm.finetune.common import batching, packing
from maskedlm.finetune.contract import Rows

LENGTHS = [3, 11, 5, 29, 8, 9, 17, 2, 23, 31, 4, 13, 6]  # 13 rows.


def make_rows(lengths=LENGTHS):
  """Returns rows; row i has tokens 100 i, 100 i + 1, ... and the value 7 i."""
  ids = [100 * i + np.arange(n, dtype=np.int32) for i, n in enumerate(lengths)]
  return Rows(
    tokens={"input_ids": ids, "token_type_ids": [x * 0 + 1 for x in ids]},
    values={"label": 7 * np.arange(len(lengths), dtype=np.int32)},
    example=np.arange(len(lengths)),
  )


def train(rows=None, *, batch_size=4, seed=0, shard=(0, 1), devices=2):
  return batching.train_batches(
    rows or make_rows(),
    batch_size=batch_size,
    length=32,
    layout=packing.unpacked_layout(batch_size // devices, 32),
    microbatches=packing.microbatch_rows(batch_size, devices, 1),
    pad=9,
    seed=seed,
    shard=shard,
  )


def heldout():
  return batching.heldout_batches(
    make_rows(),
    batch_size=4,
    length=32,
    row_length=40,
    microbatches=packing.microbatch_rows(4, 1, 1),
    pad=9,
    shard=(0, 1),
  )


def test_buckets_are_quarters_of_the_length():
  assert batching.make_buckets(128) == (32, 64, 96, 128)
  assert batching.make_buckets(50) == (16, 32, 40, 50)
  assert batching.make_buckets(8) == (8,)


def test_rows_of_a_long_length_have_short_buckets_too():
  assert batching.make_buckets(1024) == (64, 128, 192, 256, 512, 768, 1024)
  buckets = batching.make_buckets(8192)
  assert buckets[:4] == (128, 256, 384, 512) and buckets[-1] == 8192
  # A row is padded to at most twice its length, or to 128.
  for length in range(1, 8193, 7):
    L = buckets[np.searchsorted(buckets, length)]
    assert max(128, 2 * length) >= L


def planned(lengths, length, *, batch_size):
  """Returns the planned batches of rows of one sequence each."""
  return list(
    batching.plan_batches(
      np.array(lengths)[:, None],
      batching.make_buckets(length),
      batch_size=batch_size,
    )
  )


def encoder_shape(lengths, batch):
  """Returns the shape [G, r, S] of the rows that the encoder reads."""
  arrays = batching.gather_batch(make_rows(lengths), batch, 9)
  return arrays["packed"]["input_ids"].shape


def test_long_rows_get_smaller_batches():
  """As many positions as batch_size rows of 512; the longest come first."""
  lengths = [3, 5000, 600, 17, 512, 700, 120]
  plan = planned(lengths, 8192, batch_size=4)
  assert [(sorted(batch.which.tolist()), batch.length) for batch in plan] == [
    ([1], 6144),
    ([2, 5], 1024),
    ([-1, -1, -1, 4], 512),
    ([-1, 0, 3, 6], 128),
  ]
  shapes = [encoder_shape(lengths, batch) for batch in plan]
  # A filler is a token: 512 + 1 + 1 + 1 are two rows, as are 120 + 17 + 3 + 1.
  assert shapes == [(1, 1, 6144), (1, 2, 1024), (1, 2, 512), (1, 2, 128)]


def test_batches_of_inference_fill_as_many_encoder_rows():
  rng = np.random.default_rng(0)
  lengths = np.clip(rng.lognormal(3, 0.7, 333).astype(int), 3, 128)
  plan = planned(lengths, 128, batch_size=16)
  which = np.concatenate([batch.which for batch in plan])
  assert sorted(which[which >= 0]) == list(range(333))
  assert (plan[-1].which < 0).sum() == np.sum(which < 0) == 21 * 16 - 333
  rows = [encoder_shape(lengths, batch)[1] for batch in plan]
  # Of 3 to 128 tokens, 16 at random would differ by more.
  assert max(rows[:-1]) - min(rows[:-1]) <= 1 and len({*rows}) <= 2
  assert 128 * sum(rows) < 1.35 * lengths.sum()


def test_an_epoch_has_every_row_once():
  batches = train()
  assert batches.num_steps == 4  # ceil(13 / 4).
  orders = []
  for epoch in range(3):
    rows = np.concatenate([batches.row_ids(4 * epoch + i) for i in range(4)])
    assert sorted(rows[rows >= 0]) == list(range(13))
    assert np.sum(rows < 0) == 3
    orders.append(rows.tolist())
  assert orders[0] != orders[1] != orders[2]


def test_a_text_is_once_in_a_batch():
  texts = [frozenset({f"{i % 5}", f"own {i}"}) for i in range(13)]
  batches = train(make_rows()._replace(texts=texts))
  for epoch in range(3):
    ids = [batches.row_ids(4 * epoch + i) for i in range(4)]
    for which in ids:
      labels = [i % 5 for i in which if i >= 0]
      assert len(labels) == len({*labels})
    assert sorted(np.concatenate(ids)) == [-1] * 3 + [*range(13)]
  # The order is that of rows without texts, but for those that must wait.
  plain = [row for i in range(4) for row in train().row_ids(i)]
  moved = [row for i in range(4) for row in batches.row_ids(i)]
  assert plain[0] == moved[0] and plain != moved


def test_a_text_of_more_rows_than_batches_is_still_read():
  texts = [frozenset({"same" if i < 7 else f"{i}"}) for i in range(13)]
  batches = train(make_rows()._replace(texts=texts))
  ids = np.stack([batches.row_ids(i) for i in range(4)])
  assert sorted(ids.ravel()) == [-1] * 3 + [*range(13)]
  assert np.all(np.sum((ids >= 0) & (ids < 7), axis=1) >= 1)


def test_heldout_batches_are_even_and_of_one_shape():
  batches = heldout()
  ids = [batches.row_ids(i) for i in range(4)]
  assert sorted(np.concatenate(ids)) == [-1] * 3 + [*range(13)]
  assert all((which >= 0).all() for which in ids[:3])  # Fillers come last.
  # In the order of their lengths the last four would have 100 tokens.
  assert max(sum(LENGTHS[row] for row in which) for which in ids[:3]) < 70
  shapes = {batches.shape_at(step) for step in range(4)}
  assert shapes == {(2, 40)}
  for step in range(4):
    batch = batches.batch_at(step)
    assert batch["packed"]["input_ids"].shape == (1, 2, 40)
    assert batch["input_ids"].shape == (4, 32)


def test_padding_by_hand():
  # 161 tokens in 13 rows; 4 batches of 2 encoder rows of 40.
  share = batching.estimate_padding_share(make_rows(), heldout())
  assert share == pytest.approx(1 - 161 / (4 * 2 * 40))
  # A filler is a single [PAD].
  lengths = make_rows().sequence_lengths(np.array([3, -1, 12]))
  assert lengths.tolist() == [[29], [1], [6]]


def test_rows_are_padded_and_fillers_weigh_nothing():
  batches = train()
  for step in range(4):
    batch = batches.batch_at(step)
    for i, row in enumerate(batches.row_ids(step)):
      ids, segments = batch["input_ids"][i], batch["segment_ids"][i]
      assert batch["example_weights"][i] == (row >= 0)
      if row < 0:
        assert (ids == 9).all()
        assert (
          segments.sum() == 1
        )  # It attends to itself, so no softmax is empty.
        assert batch["label"][i] == 0
        continue
      n = LENGTHS[row]
      assert ids[:n].tolist() == list(range(100 * row, 100 * row + n))
      assert (ids[n:] == 9).all()
      assert (segments == (np.arange(len(ids)) < n)).all()
      assert batch["token_type_ids"][i].tolist() == segments.tolist()
      assert batch["label"][i] == 7 * row


def test_batches_are_a_function_of_the_step_and_of_the_seed():
  a, b, other = train(), train(), train(seed=1)
  order = [5, 0, 3, 11]  # In any order, from any start.
  for step in order:
    x, y = a.batch_at(step), b.batch_at(step)
    jax.tree.map(np.testing.assert_array_equal, x, y)
  assert any((a.row_ids(s) != other.row_ids(s)).any() for s in order)


def test_two_hosts_get_the_halves_of_a_batch():
  whole = train()
  halves = [train(shard=(i, 2)) for i in range(2)]
  for step in range(4):
    batches = [half.batch_at(step) for half in halves]
    joined = jax.tree.map(lambda *x: np.concatenate(x), *batches)
    jax.tree.map(np.testing.assert_array_equal, joined, whole.batch_at(step))


def test_segment_ids_of_rows_of_several_sequences():
  """In rows [C, l], segment_ids mark the tokens of each sequence."""
  ids = [np.full((3, n), 5, np.int32) for n in (4, 7)]
  lengths = np.array([[4, 2, 3], [5, 7, 1]])
  rows = Rows({"input_ids": ids}, {"sequence_lengths": lengths}, np.arange(2))
  batch = batching.gather_rows(rows, np.array([1, 0, -1]), 8, 9)
  assert batch["input_ids"].shape == (3, 3, 8)
  assert batch["segment_ids"].sum(-1).tolist() == [
    *([5, 7, 1], [4, 2, 3], [1, 1, 1])
  ]
  assert batch["segment_ids"][0, 0].tolist() == [1, 1, 1, 1, 1, 0, 0, 0]


def test_packing_reduces_padding():
  lengths = np.random.default_rng(0).integers(10, 121, 640).tolist()
  rows, microbatches = make_rows(lengths), packing.microbatch_rows(8, 1, 1)
  layout = batching.fit_layout(
    rows,
    batch_size=8,
    microbatches=microbatches,
    length=128,
    width=256,
    costs=packing.ON_CPU,
    num_steps=10**6,
  )
  options = {
    "batch_size": 8,
    "length": 128,
    "microbatches": microbatches,
    "pad": 9,
  }
  batches = batching.train_batches(
    rows, layout=layout, seed=0, shard=(0, 1), **options
  )
  share = batching.estimate_padding_share(rows, batches)
  positions = sum(np.prod(batches.shape_at(i)) for i in range(80))
  assert share == pytest.approx(1 - sum(lengths) / positions, abs=1e-12)
  assert share < 0.25  # 49% if all rows were padded to 128.
  for step in (0, 79):
    G, r, S = batches.batch_at(step)["packed"]["input_ids"].shape
    assert batches.shape_at(step) == (G * r, S)
